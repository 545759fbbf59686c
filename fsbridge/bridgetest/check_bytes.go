package bridgetest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"runtime"

	"github.com/workberth/workberth/fsbridge"
)

// bytesChecks prove that content arrives exactly, at every size. C027 C029 C035
func bytesChecks() []check {
	return []check{
		{name: "sizes", rows: []string{"C027", "C029"}, run: bytesSizes},
		{name: "content", rows: []string{"C029", "C035"}, run: bytesContent},
		{name: "read-back-unchanged", rows: []string{"C035"}, run: bytesReadBack},
		{name: "5MiB", rows: []string{"C027"}, run: bytesMedium},
		{
			name: "200MiB", rows: []string{"C027"}, long: true, run: bytesBig,
			needs: caps(fsbridge.CapWriteStream, fsbridge.CapOpenReader),
		},
	}
}

// bytesSizes writes and reads every size at which a buffer, a frame or an argument may end.
func bytesSizes(k *kit) {
	for _, n := range []int{
		0, 1, 2, 3, 5, 22, 255, 256, 511, 512, 513, 4095, 4096, 4097, 8192, 32767, 32768, 32769, 65535, 65536, 65537,
		100 << 10, 131071, 131072, 131073, 140000, 200 << 10, 300 << 10, 1<<20 - 1, 1 << 20, 1<<20 + 1,
	} {
		data := pattern(n, byte(n))
		p := fmt.Sprintf("s%d", n)
		k.ok("write "+p, k.b.WriteFile(k.ctx, p, data))
		if !bytes.Equal(k.content(p), data) {
			k.Errorf("%d bytes were written wrongly", n)
		}
		i, err := k.b.Stat(k.ctx, p)
		k.ok("stat "+p, err)
		if i.Size != int64(n) {
			k.Errorf("stat of %d bytes: size %d", n, i.Size)
		}
		got, err := k.b.ReadFile(k.ctx, p)
		k.ok("read "+p, err)
		if !bytes.Equal(got, data) {
			k.Errorf("%d bytes were read as %d others", n, len(got))
		}
		k.remove(p)
	}
}

// bytesContent writes text that a shell, a text mode or an encoder would change. C029 C035
func bytesContent(k *kit) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, c := range []string{
		"hello", "x", "", "#!/bin/sh\nexit 1\nEOF\n", "EOF\n", "\nEOF", "$(id) `id` ${HOME} $HOME", `'"\'"'`, "a\\nb\\0",
		"\x00", "\x00\x00\x00", "a\x00b", string(all), "\xef\xbb\xbfa\r\nb\r\nc\r\n", "caf\xe9\n", "no final newline",
		"\n", "\r\n", "\r", "\x1a", "\x04", "\x03", "\x11\x13", "\xff\xfe", "%s%n%d", "-n", "-----END-----", "aGVsbG8=",
		"\u202e\u0000\ufeff",
	} {
		p := fmt.Sprintf("c%d", i)
		k.ok("write", k.b.WriteFile(k.ctx, p, []byte(c)))
		k.wantContent(p, c)
		k.file(p+"o", c)
		got, err := k.b.ReadFile(k.ctx, p+"o")
		k.ok("read", err)
		if string(got) != c {
			k.Errorf("content %s was read as %s", brief([]byte(c)), brief(got))
		}
	}
}

// bytesReadBack writes back what was read; nothing but the asked bytes changes. C035
func bytesReadBack(k *kit) {
	const before = "\xef\xbb\xbfa\r\nb\r\nc\r\n\xe9"
	k.file("w.txt", before)
	got, err := k.b.ReadFile(k.ctx, "w.txt")
	k.ok("read", err)
	k.ok("write", k.b.WriteFile(k.ctx, "w.txt", got))
	k.wantContent("w.txt", before)
	k.ok("write", k.b.WriteFile(k.ctx, "w.txt", bytes.Replace(got, []byte("b"), []byte("B\r\nB2"), 1)))
	k.wantContent("w.txt", "\xef\xbb\xbfa\r\nB\r\nB2\r\nc\r\n\xe9")
}

// bytesMedium moves 5 MiB whole. C027
func bytesMedium(k *kit) {
	n := int64(5 << 20)
	if n > k.target.maxFile() {
		k.Skipf("the environment holds files up to %d bytes", k.target.maxFile())
	}
	data := pattern(int(n), 7)
	k.ok("write", k.b.WriteFile(k.ctx, "big", data))
	if !bytes.Equal(k.content("big"), data) {
		k.Error("5 MiB were written wrongly")
	}
	got, err := k.b.ReadFile(k.ctx, "big")
	k.ok("read", err)
	if !bytes.Equal(got, data) {
		k.Error("5 MiB were read wrongly")
	}
}

// bytesBig streams 200 MiB both ways; the memory in use stays far below that. C027
func bytesBig(k *kit) {
	n := int64(200 << 20)
	if n > k.target.maxFile() {
		k.Skipf("the environment holds files up to %d bytes", k.target.maxFile())
	}
	block := pattern(1<<20, 9)
	var peak, base uint64
	base = heap()
	sample := func() { peak = max(peak, heap()) }
	in := &repeatReader{block: block, left: n, each: sample}
	want := sha256.New()
	res, err := fsbridge.WriteStream(k.ctx, k.b, "big", io.TeeReader(in, want), fsbridge.WriteOptions{})
	k.ok("write", err)
	sum := fsbridge.DigestOf(want.Sum(nil))
	if res.Size != n || res.Digest != sum {
		k.Errorf("write: size %d, digest %s, want %d and %s", res.Size, res.Digest, n, sum)
	}
	if got := k.oracleDigest("big"); got != sum {
		k.Errorf("the file has digest %s, want %s", got, sum)
	}
	r, _, err := fsbridge.OpenReader(k.ctx, k.b, "big")
	k.ok("open", err)
	got := sha256.New()
	for buf, next := make([]byte, 256<<10), int64(0); ; {
		m, err := r.Read(buf)
		got.Write(buf[:m])
		if next -= int64(m); next <= 0 {
			sample()
			next = 16 << 20
		}
		if err == io.EOF {
			break
		}
		k.ok("read", err)
	}
	k.ok("close", r.Close())
	if fsbridge.DigestOf(got.Sum(nil)) != sum {
		k.Error("200 MiB were read wrongly")
	}
	if bound := base + 96<<20; peak > bound {
		k.Errorf("%d MiB of memory were in use for a stream", peak>>20)
	}
}

// heap is the memory in use by this process's objects.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// oracleDigest hashes the file at p without holding it in memory.
func (k *kit) oracleDigest(p string) fsbridge.Digest {
	k.Helper()
	r, err := k.env.Oracle.Open(k.abs(p))
	k.ok("oracle", err)
	defer func() { _ = r.Close() }()
	h := sha256.New()
	_, err = io.Copy(h, r)
	k.ok("oracle", err)
	return fsbridge.DigestOf(h.Sum(nil))
}

// repeatReader yields left bytes of block over and over.
type repeatReader struct {
	block []byte
	off   int
	left  int64
	// each is called now and then.
	each  func()
	since int
}

func (r *repeatReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), r.left)], r.block[r.off:])
	r.off = (r.off + n) % len(r.block)
	r.left -= int64(n)
	if r.since += n; r.since >= 16<<20 && r.each != nil {
		r.since = 0
		r.each()
	}
	return n, nil
}
