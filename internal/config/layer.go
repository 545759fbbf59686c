package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Layer is one set of sandbox settings; a nil field says nothing.
type Layer struct {
	Workdir        *string           `yaml:"workdir"`
	Access         *string           `yaml:"access"`
	ReadOnlyRoot   *bool             `yaml:"readOnlyRoot"`
	Tmpfs          *[]tmpfs          `yaml:"tmpfs"`
	Network        *string           `yaml:"network"`
	Env            map[string]string `yaml:"env"`
	SetupCommand   *string           `yaml:"setupCommand"`
	Limits         *limits           `yaml:"limits"`
	Binds          *[]bind           `yaml:"binds"`
	SeccompProfile *string           `yaml:"seccompProfile"`
	User           *string           `yaml:"user"`
	Engine         *string           `yaml:"engine"`
	Image          *string           `yaml:"image"`
	Privileged     *bool             `yaml:"privileged"`
	PidMode        *string           `yaml:"pidMode"`
	CapAdd         *[]string         `yaml:"capAdd"`
	GPUs           *string           `yaml:"gpus"`
	SSH            *string           `yaml:"ssh"`
	SSHConfig      *string           `yaml:"sshConfig"`
	Seed           *string           `yaml:"seed"`
	Prune          *prune            `yaml:"prune"`
	AllowDangerous *[]string         `yaml:"allowDangerous"`
}

type limits struct {
	Pids      *int64   `yaml:"pids"`
	Memory    *Size    `yaml:"memory"`
	CPUs      *float64 `yaml:"cpus"`
	OpenFiles *int64   `yaml:"openFiles"`
	FileSize  *Size    `yaml:"fileSize"`
}

type prune struct {
	IdleHours  *float64 `yaml:"idleHours"`
	MaxAgeDays *float64 `yaml:"maxAgeDays"`
}

type tmpfs struct {
	Path string `yaml:"path"`
	Size *Size  `yaml:"size"`
}

type bind struct {
	Source   string `yaml:"source"`
	Target   string `yaml:"target"`
	ReadOnly *bool  `yaml:"readOnly"`
}

// Size is a number of bytes, written as a plain number or with a unit of 1024:
// "64MiB", "2GiB", "512k".
type Size int64

// UnmarshalYAML reads a Size.
func (s *Size) UnmarshalYAML(data []byte) error {
	var text string
	if err := yaml.Unmarshal(data, &text); err != nil {
		return err
	}
	n, err := ParseSize(text)
	if err != nil {
		return err
	}
	*s = Size(n)
	return nil
}

// ParseSize reads a number of bytes: digits, then an optional unit K, M, G or T
// (of 1024), optionally followed by "B" or "iB", in any letter case.
func ParseSize(text string) (int64, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(t, "kmgtib")
	unit := strings.TrimSuffix(strings.TrimSuffix(t[len(digits):], "b"), "i")
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a size; write bytes or a number with KiB, MiB, GiB or TiB", text)
	}
	shift, ok := map[string]int{"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[unit]
	if !ok {
		return 0, fmt.Errorf("%q has no known unit; use KiB, MiB, GiB or TiB", text)
	}
	if n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return n << shift, nil
}
