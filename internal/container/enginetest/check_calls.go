package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/container"
)

func describes(k *kit) {
	d := k.about
	for what, value := range map[string]string{
		"Product": d.Product, "Version": d.Version, "API": d.API, "OS": d.OS, "Arch": d.Arch, "Kernel": d.Kernel,
		"CgroupManager": d.CgroupManager, "Storage": d.Storage, "Root": d.Root,
	} {
		if value == "" {
			k.Errorf("%s is empty", what)
		}
	}
	if d.Arch == "x86_64" || d.Arch == "aarch64" {
		k.Errorf("Arch = %q, which is not Go's word", d.Arch)
	}
	if d.CgroupVersion != "1" && d.CgroupVersion != "2" {
		k.Errorf("CgroupVersion = %q", d.CgroupVersion)
	}
}

func images(k *kit) {
	for _, name := range []string{k.plain, k.rich} {
		image, err := k.engine.Image(k.ctx, name)
		if err != nil {
			k.Fatal(err)
		}
		if !slices.Contains(image.Names, name) || image.OS != "linux" || image.Arch == "" || image.Size <= 0 || image.Created.IsZero() {
			k.Errorf("Image(%s) = %+v", name, image)
		}
		again, err := k.engine.Image(k.ctx, image.ID)
		if err != nil || again.ID != image.ID {
			k.Errorf("Image(%s) = %+v, %v", image.ID, again, err)
		}
	}
	if image, _ := k.engine.Image(k.ctx, k.rich); !slices.Contains(image.Env, "FROM_IMAGE=image") {
		k.Errorf("Env = %q", image.Env)
	}
}

func missingImage(k *kit) {
	for _, name := range []string{
		"localhost/enginetest-none:1", "enginetest-none", strings.Repeat("0", 64), "x y?z#%41/json", "", "..",
	} {
		_, err := k.engine.Image(k.ctx, name)
		if err == nil {
			k.Errorf("Image(%q) found something", name)
		}
		if name != "" && !strings.ContainsAny(name, " .") || strings.Contains(name, "/enginetest") {
			k.wantErr(fmt.Sprintf("Image(%q)", name), err, container.ErrNotFound)
		}
	}
	s := k.spec("true")
	s.Image = "localhost/enginetest-none:1"
	_, err := k.engine.Create(k.ctx, s)
	k.wantErr("Create", err, container.ErrNotFound)
	_, err = k.engine.Inspect(k.ctx, s.Name)
	k.wantErr("Inspect after it", err, container.ErrNotFound)
}

func failedPull(k *kit) {
	// Nobody listens on the port.
	err := k.engine.Pull(k.ctx, "127.0.0.1:1/enginetest/none:1", func(string) {})
	if err == nil || errors.Is(err, container.ErrUnreachable) {
		k.Fatalf("Pull = %v, want the engine's refusal", err)
	}
	if text := err.Error(); len(text) < 20 || len(text) > 4096 || strings.ContainsAny(text, "\x00\x1b{") {
		k.Errorf("the error cannot be read by people: %q", text)
	}
}

func conflict(k *kit) {
	s := k.spec("true")
	k.create(s)
	_, err := k.engine.Create(k.ctx, s)
	k.wantErr("Create", err, container.ErrConflict)
	if err != nil && !strings.Contains(err.Error(), s.Name) {
		k.Errorf("the error does not name the container: %v", err)
	}
}

func notFound(k *kit) {
	for _, id := range []string{strings.Repeat("0", 64), "enginetest-" + k.word + "-none", "", "..", "a/b?c", "%2e%2e"} {
		_, inspect := k.engine.Inspect(k.ctx, id)
		_, wait := k.engine.Wait(k.ctx, id)
		_, logs := k.engine.Logs(k.ctx, id, 10, time.Time{})
		for what, err := range map[string]error{
			"Inspect": inspect, "Wait": wait, "Logs": logs, "Start": k.engine.Start(k.ctx, id), "Kill": k.engine.Kill(k.ctx, id),
		} {
			if id == "" || strings.ContainsAny(id, "./?%") { // no names at all: any refusal will do
				if err == nil {
					k.Errorf("%s(%q) is no error", what, id)
				}
				continue
			}
			k.wantErr(fmt.Sprintf("%s(%q)", what, id), err, container.ErrNotFound)
		}
		if err := k.engine.Remove(k.ctx, id); err != nil && id != "" && !strings.ContainsAny(id, "./?%") {
			k.Errorf("Remove(%q): %v", id, err)
		}
	}
}

func labels(k *kit) {
	one, two := k.spec(forever), k.spec("true")
	maps.Copy(one.Labels, map[string]string{"berth.a": "x=y,z \"ü\"", "berth.empty": ""})
	maps.Copy(two.Labels, map[string]string{"berth.a": "other", "berth.empty": "not"})
	first, second := k.start(one), k.create(two)
	both := []string{first, second}
	slices.Sort(both)
	for _, tc := range []struct {
		labels map[string]string
		want   []string
	}{
		{map[string]string{label: k.word, "berth.a": "x=y,z \"ü\""}, []string{first}},
		{map[string]string{label: k.word, "berth.a": "other"}, []string{second}},
		{map[string]string{label: k.word, "berth.empty": ""}, []string{first}},
		{map[string]string{label: k.word, "berth.a": "x"}, nil},
		{map[string]string{label: k.word, "berth.b": ""}, nil},
		{map[string]string{label: k.word}, both},
	} {
		found, err := k.engine.List(k.ctx, tc.labels)
		if err != nil {
			k.Fatal(err)
		}
		var got []string
		for _, c := range found {
			got = append(got, c.ID)
			want := k.inspect(c.ID)
			want.Exit = container.Exit{}
			if c.Name != want.Name || c.ImageID != want.ImageID || c.Status != want.Status || c.PID != want.PID && c.PID != 0 || !maps.Equal(c.Labels, want.Labels) {
				k.Errorf("List has %+v, Inspect %+v", c, want)
			}
			if c.Created.Unix() != want.Created.Unix() && !c.Created.IsZero() {
				k.Errorf("List has the time %v, Inspect %v", c.Created, want.Created)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) {
			k.Errorf("List(%v) = %q, want %q", tc.labels, got, tc.want)
		}
	}
}

func crowd(k *kit) {
	var group sync.WaitGroup
	for i := range 4 {
		s := k.spec(fmt.Sprintf("exit %d", 10+i))
		group.Go(func() {
			made, err := k.engine.Create(k.ctx, s)
			if err != nil {
				k.Errorf("Create: %v", err)
				return
			}
			if err := k.engine.Start(k.ctx, made.ID); err != nil {
				k.Errorf("Start: %v", err)
			} else if code, err := k.engine.Wait(k.ctx, made.ID); err != nil || code != 10+i {
				k.Errorf("Wait = %d, %v; want %d", code, err, 10+i)
			}
			if err := k.engine.Remove(k.ctx, made.ID); err != nil {
				k.Errorf("Remove: %v", err)
			}
		})
	}
	group.Wait()
}

// calls makes every call that needs no container.
func (k *kit) calls(ctx context.Context, engine container.Engine) map[string]error {
	errs := map[string]error{}
	_, errs["Describe"] = engine.Describe(ctx)
	_, errs["Image"] = engine.Image(ctx, k.plain)
	errs["Pull"] = engine.Pull(ctx, "127.0.0.1:1/none:1", nil)
	_, errs["Import"] = engine.Import(ctx, "localhost/enginetest-none:1", strings.NewReader("x"))
	_, errs["Load"] = engine.Load(ctx, strings.NewReader("x"))
	_, errs["Create"] = engine.Create(ctx, k.spec("true"))
	errs["Start"] = engine.Start(ctx, "none")
	_, errs["Wait"] = engine.Wait(ctx, "none")
	errs["Kill"] = engine.Kill(ctx, "none")
	errs["Remove"] = engine.Remove(ctx, "none")
	_, errs["Inspect"] = engine.Inspect(ctx, "none")
	_, errs["List"] = engine.List(ctx, nil)
	_, errs["Logs"] = engine.Logs(ctx, "none", 1, time.Time{})
	return errs
}

func cancelled(k *kit) {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	for what, err := range k.calls(ctx, k.engine) {
		k.wantErr(what, err, context.Canceled)
	}
}

func unreachable(k *kit) {
	if k.suite.unreachable == nil {
		missing(k, "no client of an address without an engine was given")
	}
	for what, err := range k.calls(k.ctx, k.suite.unreachable) {
		k.wantErr(what, err, container.ErrUnreachable)
	}
}

// missingNetwork covers a named network that does not exist, which is no missing image.
func missingNetwork(k *kit) {
	s := k.spec("true")
	s.Network = "enginetest-" + k.word + "-none"
	made, err := k.engine.Create(k.ctx, s)
	if err == nil {
		defer k.remove(made.ID)
		err = k.engine.Start(k.ctx, made.ID)
	}
	if err == nil || !strings.Contains(err.Error(), s.Network) || errors.Is(err, container.ErrNotFound) {
		k.Errorf("err = %v, want one that names the network and does not match %q", err, container.ErrNotFound)
	}
}
