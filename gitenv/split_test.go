package gitenv_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/gitenv"
)

// credentialEnv is what a child may inherit; every entry leads to a credential.
var credentialEnv = []string{
	"GITHUB_TOKEN=ghs_abcdefgh", "GH_TOKEN=gho_ijklmnop", "OPENAI_API_KEY=sk-qrstuv", "AWS_SECRET_ACCESS_KEY=wxyzabcd",
	"AWS_ACCESS_KEY_ID=AKIAEFGH", "PGPASSWORD=ijklmnop", "MYSQL_PWD=qrstuvwx", "GIT_ASKPASS=/usr/lib/ask", "SSH_ASKPASS=/usr/lib/ask",
	"SSH_AUTH_SOCK=/tmp/ssh-x/agent.1", "GPG_AGENT_INFO=/tmp/gpg:1:1", "GOOGLE_APPLICATION_CREDENTIALS=/home/p/key.json", "NETRC=/home/p/.netrc",
	"KUBECONFIG=/home/p/.kube/config", "db_password=yzabcdef", "NPM_CONFIG_//registry/:_authToken=ghijklmn", "SENTRY_DSN=opqrstuv", "MY_PAT=wxyzwxyz",
}

// GIT-10 GIT-11: no inherited credential gets into overrides or durable configuration, under its own name or another.
func TestSplitEnvWithholdsInheritedCredentials(t *testing.T) {
	for _, entry := range credentialEnv {
		name, value, _ := strings.Cut(entry, "=")
		allowed, withheld := gitenv.SplitEnv(credentialEnv, []string{"SAFE=1", entry, "OTHER=x" + value + "y"})
		if !slices.Equal(allowed, []string{"SAFE=1"}) {
			t.Errorf("%s: allowed %q", name, allowed)
		}
		want := []gitenv.Withheld{
			{Index: 1, Name: name, Reason: gitenv.ReasonName},
			{Index: 2, Name: "OTHER", Reason: gitenv.ReasonInherited},
		}
		if !slices.Equal(withheld, want) {
			t.Errorf("%s: withheld %+v, want %+v", name, withheld, want)
		}
	}
}

// GIT-10 GIT-11: the table of reasons.
func TestSplitEnv(t *testing.T) {
	inherited := []string{
		"SHORT_TOKEN=true", "DATABASE_URL=postgres://app:s3cr3tpw@db/x",
		parameters(`'http.extraHeader=Authorization: Basic dXNlcjpwYXNz' 'url.https://bot:t0ken123@h/.insteadOf=https://h/' 'user.name=Some Name'` +
			` 'url.https://bot:in'\!'thekey@h/.insteadOf=x:' 'http.proxy=http://u:in'\!'thevalue@h'`),
	}
	for _, tc := range []struct {
		explanation, entry string
		want               gitenv.Reason
	}{
		{"an ordinary variable", "LANG=C", ""},
		{"directories with an unlucky name", "PWD=/home/p", ""},
		{"and the other one", "OLDPWD=/", ""},
		{"an empty value", "EMPTY=", ""},
		{"a URL without a password", "REPO=ssh://git@host/x", ""},
		{"an @ in the path", "PAGE=https://host/@user:x", ""},
		{"a word that merely begins like a scheme", "NOTE=basic training course", ""},
		{"a short inherited value is not searched for", "FLAG=true", ""},
		{"a setting that is not a credential", "AUTHOR=Some Name", ""},
		{"the composed value holds the inherited one", parameters(`'a.b=c'`), gitenv.ReasonGitCarrier},
		{"so may the COUNT family", "GIT_CONFIG_COUNT=1", gitenv.ReasonGitCarrier},
		{"its keys", "GIT_CONFIG_KEY_0=a.b", gitenv.ReasonGitCarrier},
		{"its values", "GIT_CONFIG_VALUE_0=c", gitenv.ReasonGitCarrier},
		{"a credential the native side set itself", "BUILD_TOKEN=x", gitenv.ReasonName},
		{"any case", "build_secret=x", gitenv.ReasonName},
		{"a proxy with a password", "HTTPS_PROXY=http://u:p@proxy:3128", gitenv.ReasonForm},
		{"a token as the user of a URL", "REPO=https://ghs_x@github.com/a/b", gitenv.ReasonForm},
		{"the second URL", "URLS=https://a/ https://u:p@b/", gitenv.ReasonForm},
		{"a header", "HDR=authorization: Basic eHl6", gitenv.ReasonForm},
		{"its value", "HDR=Bearer abc.def", gitenv.ReasonForm},
		{"a private key", "PEM=-----BEGIN OPENSSH PRIVATE KEY-----\nx", gitenv.ReasonForm},
		{"the password of an inherited URL", "DB_ARG=--pw=s3cr3tpw", gitenv.ReasonInherited},
		{"the credential of an inherited git header", "X=dXNlcjpwYXNz", gitenv.ReasonInherited},
		{"the password in an inherited git key", "X=a-t0ken123", gitenv.ReasonInherited},
		{"the same where git quotes it", "X=in!thekey", gitenv.ReasonInherited},
		{"and in a value", "X=in!thevalue", gitenv.ReasonInherited},
		{"not a variable", "just text", gitenv.ReasonNotVariable},
		{"a variable without a name", "=x", gitenv.ReasonNotVariable},
	} {
		allowed, withheld := gitenv.SplitEnv(inherited, []string{tc.entry})
		if tc.want == "" {
			if !slices.Equal(allowed, []string{tc.entry}) || withheld != nil {
				t.Errorf("%s: %q is withheld: %+v", tc.explanation, tc.entry, withheld)
			}
			continue
		}
		if allowed != nil || len(withheld) != 1 || withheld[0].Reason != tc.want {
			t.Errorf("%s: %q: allowed %q, withheld %+v; want %q", tc.explanation, tc.entry, allowed, withheld, tc.want)
		}
	}
}

// GIT-10 GIT-11: of a whole composed environment, offered as overrides, nothing of the credentials is left.
func TestSplitComposedEnvironment(t *testing.T) {
	inherited := append(slices.Clone(credentialEnv), "PATH=/bin", parameters(`'http.extraHeader=Authorization: Bearer inherited-secret'`))
	env, err := gitenv.Apply(gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited, Explicit: []string{"TERM=dumb"}}, ptr(hostFragment))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := gitenv.LookupIn(env)("GITHUB_TOKEN"); v != "ghs_abcdefgh" {
		t.Errorf("the child lost its own credential: %q", v)
	}
	allowed, withheld := gitenv.SplitEnv(inherited, env)
	if !slices.Equal(allowed, []string{"PATH=/bin", "TERM=dumb"}) {
		t.Errorf("allowed %q", allowed)
	}
	if len(allowed)+len(withheld) != len(env) {
		t.Errorf("%d allowed and %d withheld of %d", len(allowed), len(withheld), len(env))
	}
	if text := fmt.Sprintf("%+v", withheld); strings.Contains(text, "secret") || strings.Contains(text, "ghs_") {
		t.Errorf("the report holds a value: %s", text)
	}
}

// GIT-11: the same for settings.
func TestSplitConfig(t *testing.T) {
	inherited := []string{
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=credential.helper", "GIT_CONFIG_VALUE_0=!echo password=inh3rited",
	}
	for _, tc := range []struct {
		explanation string
		pair        gitenv.Pair
		name        string
		want        gitenv.Reason
	}{
		{"an ordinary setting", pair("safe.directory", "/ws"), "", ""},
		{"a valueless one", flag("core.bare"), "", ""},
		{"a signing key is a public name", pair("user.signingKey", "ABCD"), "", ""},
		{"a rewrite without a password", pair("url.ssh://git@h/.insteadOf", "https://h/"), "", ""},
		{"a helper", pair("credential.helper", "store"), "credential.helper", gitenv.ReasonName},
		{"a helper for one host", pair("Credential.https://h.Helper", "store"), "credential.*.helper", gitenv.ReasonName},
		{"a header", pair("http.extraHeader", "X: y"), "http.extraheader", gitenv.ReasonName},
		{"a header for one host", pair("http.https://h/.extraHeader", "X: y"), "http.*.extraheader", gitenv.ReasonName},
		{"a cookie file", pair("http.cookieFile", "/c"), "http.cookiefile", gitenv.ReasonName},
		{"a client key", pair("http.sslKey", "/k"), "http.sslkey", gitenv.ReasonName},
		{"a mail password", pair("sendemail.smtpPass", "x"), "sendemail.smtppass", gitenv.ReasonName},
		{"an asking program", pair("core.askPass", "/a"), "core.askpass", gitenv.ReasonName},
		{"a token of a tool", pair("github.oauth-token", "x"), "github.oauth-token", gitenv.ReasonName},
		{"a password in the key", pair("url.https://u:hunter2@h/.insteadOf", "https://h/"), "url.*.insteadof", gitenv.ReasonForm},
		{"a password in the value", pair("http.proxy", "http://u:p@h"), "http.proxy", gitenv.ReasonForm},
		{"an inherited value in the value", pair("alias.x", "!echo password=inh3rited"), "alias.x", gitenv.ReasonInherited},
		{"an inherited value in the key", pair("a.password=inh3rited.b", "x"), "a.*.b", gitenv.ReasonInherited},
	} {
		allowed, withheld, err := gitenv.SplitConfig(inherited, []gitenv.Pair{tc.pair})
		if err != nil {
			t.Errorf("%s: %v", tc.explanation, err)
			continue
		}
		if tc.want == "" {
			if !samePairs(allowed, []gitenv.Pair{tc.pair}) || withheld != nil {
				t.Errorf("%s is withheld: %+v", tc.explanation, withheld)
			}
			continue
		}
		want := []gitenv.Withheld{{Index: 0, Name: tc.name, Reason: tc.want}}
		if allowed != nil || !slices.Equal(withheld, want) {
			t.Errorf("%s: allowed %+v, withheld %+v; want %+v", tc.explanation, allowed, withheld, want)
		}
	}
	var at *gitenv.PairError
	allowed, withheld, err := gitenv.SplitConfig(nil, []gitenv.Pair{pair("a.b", "c"), pair("bad", "x")})
	if !errors.As(err, &at) || at.Index != 1 || allowed != nil || withheld != nil {
		t.Errorf("a bad key: %+v, %+v, %v", allowed, withheld, err)
	}
}

// An inherited value that git refuses gives git nothing, and the split goes on without it.
func TestSplitEnvWithBrokenBase(t *testing.T) {
	allowed, withheld := gitenv.SplitEnv([]string{parameters("broken"), "A_TOKEN=secret-1"}, []string{"X=1", "Y=secret-1"})
	if !slices.Equal(allowed, []string{"X=1"}) || len(withheld) != 1 {
		t.Errorf("allowed %q, withheld %+v", allowed, withheld)
	}
}
