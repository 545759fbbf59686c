package ssh

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/internal/asuser"
	"github.com/workberth/workberth/internal/sshtest"
)

// allHosts runs the whole suite on every kind of host, which takes minutes for each.
const allHosts = "BERTH_SSH_HOSTS"

// The suite on hosts of other kinds, as an account of its own. C103 C117
func TestConformanceHosts(t *testing.T) {
	kinds := map[string]struct {
		shell   string
		account sshtest.AccountOptions
		server  sshtest.Options
	}{
		"sh":         {shell: "/bin/sh"},
		"fish":       {shell: "/usr/bin/fish"},
		"tcsh":       {shell: "/bin/tcsh"},
		"zsh":        {shell: "/usr/bin/zsh"},
		"closedhome": {shell: "/bin/bash", account: sshtest.AccountOptions{NoWriteHome: true}},
		"onesession": {shell: "/bin/sh", server: sshtest.Options{MaxSessions: 1}},
		"nosftp":     {shell: "/bin/sh", server: sshtest.Options{NoSFTP: true}},
		"dropbear":   {shell: "/bin/sh", server: sshtest.Options{Dropbear: true}},
	}
	if os.Getenv(allHosts) == "" && os.Getenv(suiteConfigVar) == "" {
		t.Skip("set " + allHosts + "=1 to run the suite on every kind of host; TestLoginShells and TestOtherServers prove each of them in short")
	}
	shared := ""
	if os.Getenv(suiteConfigVar) == "" {
		shared = programs(t)
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(suiteConfigVar) != "" { // as the account
				runSuite(t, suiteConfig(t))
				return
			}
			t.Parallel()
			k.server.Account = sshtest.NewAccount(t, k.shell, k.account)
			if !k.server.Dropbear {
				k.server.MaxStartups = "200"
			}
			server := sshtest.Start(t, k.server)
			// The account has to read the key and the configuration.
			for _, file := range []string{server.IdentityFile, server.KnownHostsFile} {
				if err := os.Chown(file, k.server.Account.UID, k.server.Account.GID); err != nil {
					t.Fatal(err)
				}
			}
			config := sshConfig(t, server)
			if err := os.Chmod(config, 0o644); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(fallbackCache(k.server.Account.UID)) })
			asuser.RerunAs(t, k.server.Account.UID, suiteConfigVar+"="+config, helperVar+"="+shared+"/berth-guest", "BERTH_TESTPROG="+shared+"/testprog")
		})
	}
}

// programs makes the helper and the suite's program where every account can read them.
func programs(t testing.TB) string {
	t.Helper()
	dir := sharedDir(t)
	for name, pkg := range map[string]string{"berth-guest": "cmd/berth-guest", "testprog": "sandbox/backendtest/testprog"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), "github.com/workberth/workberth/"+pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}
