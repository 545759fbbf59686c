package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// Values of environment variables appear in no text made for logs.
func TestNoSecretsInText(t *testing.T) {
	env := Env{"TOKEN": "hunter2"}
	c := Config{Env: map[string]string{"TOKEN": "hunter2"}, Network: "none"}
	spec := Spec{Config: c}
	exec := ExecSpec{Env: env}
	var log bytes.Buffer
	l := slog.New(slog.NewTextHandler(&log, nil))
	l.Info("x", "env", env, "config", c, "info", Info{Config: c}, "spec", spec)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "env", env, "config", c)
	for _, text := range []string{
		fmt.Sprint(env), fmt.Sprintf("%v %+v %#v %s", env, env, env, env), fmt.Sprintf("%v %+v %#v", c, c, c),
		fmt.Sprintf("%v %+v %#v", spec, spec, exec), log.String(),
	} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("a value is shown: %s", text)
		}
		if !strings.Contains(text, "TOKEN") {
			t.Errorf("the name is missing: %s", text)
		}
	}
	data, err := json.Marshal(c.Redacted())
	if err != nil || bytes.Contains(data, []byte("hunter2")) || !bytes.Contains(data, []byte("TOKEN")) {
		t.Errorf("redacted form: %s, %v", data, err)
	}
	if c.Env["TOKEN"] != "hunter2" {
		t.Error("redacting changed the original")
	}
}
