package gitenv_test

import (
	"errors"
	"fmt"

	"github.com/workberth/workberth/gitenv"
)

// A host captures its fragment once; each child gets it behind what it inherits, if it is a local one.
func ExamplePreparedEnvironment() {
	fragment, err := gitenv.SafeDirectories("/srv/work space")
	if err != nil {
		fmt.Println(err)
		return
	}
	prepared, err := gitenv.Prepare(gitenv.Facts{
		AgentID: "main", SessionID: "s-1", RunID: "r-1", RequesterID: "ada",
		WorkingDir: "/srv/work space", Placement: gitenv.LocalHost,
	}, &fragment)
	if err != nil {
		fmt.Println(err)
		return
	}
	inherited := []string{"LANG=C", `GIT_CONFIG_PARAMETERS='user.name=Ada'`}
	for _, placement := range []gitenv.Placement{gitenv.LocalHost, gitenv.Sandboxed} {
		env, err := prepared.ChildEnviron(gitenv.Child{Placement: placement, Inherited: inherited})
		fmt.Println(placement, env[1], err)
	}
	// Output:
	// local-host GIT_CONFIG_PARAMETERS='user.name=Ada' 'safe.directory=/srv/work space' <nil>
	// sandbox GIT_CONFIG_PARAMETERS='user.name=Ada' <nil>
}

func ExampleCompose() {
	inherited, empty, broken := `'user.name=Ada'`, "", "user.name=Ada"
	fmt.Println(gitenv.Compose(&inherited, nil, `'core.pager=cat'`))
	fmt.Println(gitenv.Compose(&inherited, &empty, `'core.pager=cat'`))
	_, err := gitenv.Compose(&broken, nil, `'core.pager=cat'`)
	fmt.Println(err)
	// Output:
	// 'user.name=Ada' 'core.pager=cat' <nil>
	// 'core.pager=cat' <nil>
	// gitenv: cannot append to the inherited value: GIT_CONFIG_PARAMETERS: byte 0: an item must start with a single quote (git would refuse it); correct or unset it in the environment the harness is started from
}

func ExampleFragment() {
	fmt.Println(gitenv.Fragment(
		gitenv.Pair{Key: "user.name", Value: "Grace O'Malley"},
		gitenv.Pair{Key: "core.ignoreCase", Valueless: true},
		gitenv.Pair{Key: "url.https://host/?q=1.insteadOf", Value: "q:"},
	))
	// Output:
	// 'user.name=Grace O'\''Malley' 'core.ignoreCase' 'url.https://host/?q=1.insteadOf'='q:' <nil>
}

func ExampleParse() {
	pairs, err := gitenv.Parse(`'user.name=Ada' 'Core.Bare' 'a.b'=''`)
	for _, p := range pairs {
		fmt.Printf("%s %q %v\n", p.Key, p.Value, p.Valueless)
	}
	fmt.Println(err)
	_, err = gitenv.Parse(`'user.name=Ada' 'a.b'=c`)
	var syntax *gitenv.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println(syntax.Offset, syntax.Reason)
	}
	// Output:
	// user.name "Ada" false
	// core.bare "" true
	// a.b "" false
	// <nil>
	// 22 the value behind "=" is not quoted
}

// What git takes from an environment: GIT_CONFIG_PARAMETERS comes last and wins.
func ExampleEffective() {
	pairs, err := gitenv.Effective(gitenv.LookupIn([]string{
		`GIT_CONFIG_PARAMETERS='core.pager=cat'`,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.pager", "GIT_CONFIG_VALUE_0=less",
	}))
	for _, p := range pairs {
		fmt.Println(p.Key, p.Value)
	}
	fmt.Println(err)
	// Output:
	// core.pager less
	// core.pager cat
	// <nil>
}

// Before a child's variables become overrides of a tool request, credentials are left behind.
func ExampleSplitEnv() {
	child := []string{"LANG=C", "API_TOKEN=s3cr3t-1", "URL=https://host/?t=s3cr3t-1", `GIT_CONFIG_PARAMETERS='a.b=c'`}
	allowed, withheld := gitenv.SplitEnv(child, child)
	fmt.Println(allowed)
	for _, w := range withheld {
		fmt.Println(w.Name, w.Reason)
	}
	// Output:
	// [LANG=C]
	// API_TOKEN has the name of a credential
	// URL contains an inherited credential
	// GIT_CONFIG_PARAMETERS carries git configuration
}

func ExampleKeepNames() {
	env, err := gitenv.Apply(gitenv.Child{
		Placement: gitenv.LocalHost,
		Inherited: []string{"LANG=C", "DEBUG=1"},
		Filter:    gitenv.KeepNames(func(name string) bool { return name == "LANG" }),
	}, new(string))
	fmt.Println(env, err)
	// Output:
	// [LANG=C] <nil>
}
