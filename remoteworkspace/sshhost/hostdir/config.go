package hostdir

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/workberth/workberth/remoteworkspace/sshhost"
)

// Config are the settings of the server.
type Config struct {
	// Listen is the address of SSH, Metrics that of /metrics and /healthz; empty is off.
	Listen  string `yaml:"listen"`
	Metrics string `yaml:"metrics"`
	// Drain is how long running sessions may finish when the server ends.
	Drain  time.Duration `yaml:"drain"`
	Limits Limits        `yaml:"limits"`
}

// Limits are those of [sshhost.Limits]; what is left out has its default.
type Limits struct {
	Connections     int           `yaml:"connections"`
	PerAddress      int           `yaml:"perAddress"`
	PerWorkspace    int           `yaml:"perWorkspace"`
	Unauthenticated int           `yaml:"unauthenticated"`
	LoginGrace      time.Duration `yaml:"loginGrace"`
	AuthTries       int           `yaml:"authTries"`
	Sessions        int           `yaml:"sessions"`
	Idle            time.Duration `yaml:"idle"`
	Keepalive       time.Duration `yaml:"keepalive"`
	KeepaliveMisses int           `yaml:"keepaliveMisses"`
	EnvCount        int           `yaml:"envCount"`
	EnvBytes        int           `yaml:"envBytes"`
	CommandBytes    int           `yaml:"commandBytes"`
	OpenFiles       int           `yaml:"openFiles"`
	BufferBytes     int64         `yaml:"bufferBytes"`
	SpoolBytes      int64         `yaml:"spoolBytes"`
	Warm            time.Duration `yaml:"warm"`
}

// Config reads the settings.
func (d *Dir) Config() (Config, error) {
	c := Config{}
	if err := d.decode(configFile, &c); err != nil {
		return c, err
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:2222"
	}
	if c.Drain == 0 {
		c.Drain = 30 * time.Second
	}
	if c.Drain < 0 {
		return c, refused(filepath.Join(d.path, configFile), "drain is negative", "give a time such as 30s")
	}
	return c, nil
}

// Server are the limits for the server.
func (l Limits) Server() sshhost.Limits { return sshhost.Limits(l) }

// decode reads a YAML file; an unknown key is an error, as a limit with a typing error in
// its name would limit nothing.
func (d *Dir) decode(name string, to any) error {
	data, err := d.read(name)
	if err != nil {
		return err
	}
	err = yaml.UnmarshalWithOptions(data, to, yaml.Strict())
	if err == nil {
		return nil
	}
	text := err.Error()
	var ye yaml.Error
	if errors.As(err, &ye) {
		text = ye.GetMessage()
		if token := ye.GetToken(); token != nil && token.Position != nil {
			text = fmt.Sprintf("line %d: %s", token.Position.Line, text)
		}
	}
	return refused(filepath.Join(d.path, name), text, "correct the file")
}
