package libpod

import "time"

// ErrorModel is an answer that says no.
type ErrorModel struct {
	Because string `json:"cause"`
	Message string `json:"message"`
}

// SpecGenerator is what a container is made of.
type SpecGenerator struct {
	Name             string            `json:"name,omitempty"`
	Image            string            `json:"image"`
	Entrypoint       []string          `json:"entrypoint"`
	Command          []string          `json:"command"`
	Env              map[string]string `json:"env,omitempty"`
	EnvHost          bool              `json:"env_host"`
	HTTPProxy        bool              `json:"httpproxy"`
	Terminal         bool              `json:"terminal"`
	Stdin            bool              `json:"stdin"`
	Labels           map[string]string `json:"labels,omitempty"`
	LogConfiguration LogConfig         `json:"log_configuration"`
	RestartPolicy    string            `json:"restart_policy"`
	Systemd          string            `json:"systemd"`
	SdNotifyMode     string            `json:"sdnotifyMode"`
	Init             bool              `json:"init"`
	WorkDir          string            `json:"work_dir,omitempty"`
	Hostname         string            `json:"hostname,omitempty"`
	User             string            `json:"user,omitempty"`

	Mounts             []Mount       `json:"mounts,omitempty"`
	Volumes            []NamedVolume `json:"volumes,omitempty"`
	ImageVolumeMode    string        `json:"image_volume_mode"`
	ReadOnlyFilesystem bool          `json:"read_only_filesystem"`
	ReadWriteTmpfs     bool          `json:"read_write_tmpfs"`
	Devices            []LinuxDevice `json:"devices,omitempty"`

	PidNS    Namespace                    `json:"pidns"`
	UtsNS    Namespace                    `json:"utsns"`
	IpcNS    Namespace                    `json:"ipcns"`
	UserNS   Namespace                    `json:"userns"`
	CgroupNS Namespace                    `json:"cgroupns"`
	NetNS    Namespace                    `json:"netns"`
	Networks map[string]PerNetworkOptions `json:"networks,omitempty"`

	Privileged         bool     `json:"privileged,omitempty"`
	CapAdd             []string `json:"cap_add,omitempty"`
	CapDrop            []string `json:"cap_drop,omitempty"`
	NoNewPrivileges    bool     `json:"no_new_privileges"`
	SeccompProfilePath string   `json:"seccomp_profile_path,omitempty"`

	ResourceLimits LinuxResources      `json:"resource_limits"`
	Rlimits        []POSIXRlimit       `json:"r_limits,omitempty"`
	HealthConfig   Schema2HealthConfig `json:"healthconfig"`
}

// LogConfig is where a container's output goes.
type LogConfig struct {
	Driver string `json:"driver"`
	// Size is the largest size of the file, in bytes.
	Size int64 `json:"size"`
}

// Mount is a mount, in the words of the OCI.
type Mount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options"`
}

// NamedVolume is a volume in a container.
type NamedVolume struct {
	Name    string   `json:"Name"`
	Dest    string   `json:"Dest"`
	Options []string `json:"Options"`
}

// VolumeConfig is what the engine tells of a volume.
type VolumeConfig struct {
	Name   string            `json:"Name"`
	Labels map[string]string `json:"Labels"`
}

// VolumeCreateOptions asks for a volume.
type VolumeCreateOptions struct {
	Name   string            `json:"Name"`
	Labels map[string]string `json:"Labels"`
}

// LinuxDevice is a device; one of the Container Device Interface has its name in Path.
type LinuxDevice struct {
	Path string `json:"path"`
}

// Namespace says which namespace of a kind a container is in.
type Namespace struct {
	NSMode string `json:"nsmode"`
}

// PerNetworkOptions are those of a container in a network.
type PerNetworkOptions struct{}

// LinuxResources are limits that control groups keep.
type LinuxResources struct {
	Pids   LinuxPids    `json:"pids"`
	Memory *LinuxMemory `json:"memory,omitempty"`
	CPU    *LinuxCPU    `json:"cpu,omitempty"`
}

// LinuxPids limits processes; -1 means no limit.
type LinuxPids struct {
	Limit int64 `json:"limit"`
}

// LinuxMemory limits memory, in bytes; Swap is memory and swap together.
type LinuxMemory struct {
	Limit int64 `json:"limit"`
	Swap  int64 `json:"swap"`
}

// LinuxCPU limits processor time: Quota in each Period, in microseconds.
type LinuxCPU struct {
	Quota  int64  `json:"quota"`
	Period uint64 `json:"period"`
}

// POSIXRlimit is a limit of setrlimit; Type is "nofile" and so on.
type POSIXRlimit struct {
	Type string `json:"type"`
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

// Schema2HealthConfig is a health check; the test "NONE" means none.
type Schema2HealthConfig struct {
	Test []string `json:"Test"`
}

// ContainerCreateResponse is a new container.
type ContainerCreateResponse struct {
	ID       string   `json:"Id"`
	Warnings []string `json:"Warnings"`
}

// InspectContainerData describes a container.
type InspectContainerData struct {
	ID         string                     `json:"Id"`
	Created    time.Time                  `json:"Created"`
	State      InspectContainerState      `json:"State"`
	Image      string                     `json:"Image"`
	Name       string                     `json:"Name"`
	Config     InspectContainerConfig     `json:"Config"`
	HostConfig InspectContainerHostConfig `json:"HostConfig"`
}

// InspectContainerState is what a container is doing.
type InspectContainerState struct {
	Status     string    `json:"Status"`
	OOMKilled  bool      `json:"OOMKilled"`
	Pid        int       `json:"Pid"`
	ExitCode   int       `json:"ExitCode"`
	Error      string    `json:"Error"`
	StartedAt  time.Time `json:"StartedAt"`
	FinishedAt time.Time `json:"FinishedAt"`
}

// InspectContainerConfig is what a container was made with.
type InspectContainerConfig struct {
	Labels map[string]string `json:"Labels"`
}

// InspectContainerHostConfig is what a container has of its machine.
type InspectContainerHostConfig struct {
	PidMode string `json:"PidMode"`
}

// ListContainer is a container in a list. StartedAt is in seconds of Unix.
type ListContainer struct {
	ID        string            `json:"Id"`
	Names     []string          `json:"Names"`
	ImageID   string            `json:"ImageID"`
	Labels    map[string]string `json:"Labels"`
	State     string            `json:"State"`
	Pid       int               `json:"Pid"`
	StartedAt int64             `json:"StartedAt"`
	Created   time.Time         `json:"Created"`
}

// ImageInspectReport describes an image.
type ImageInspectReport struct {
	ID           string      `json:"Id"`
	RepoTags     []string    `json:"RepoTags"`
	Created      time.Time   `json:"Created"`
	Architecture string      `json:"Architecture"`
	Os           string      `json:"Os"`
	Size         int64       `json:"Size"`
	Config       ImageConfig `json:"Config"`
}

// ImageConfig is what containers of an image start with.
type ImageConfig struct {
	Env []string `json:"Env"`
}

// ImagePullReport is a line of the answer to a pull.
type ImagePullReport struct {
	Stream string   `json:"stream"`
	Error  string   `json:"error"`
	Images []string `json:"images"`
	ID     string   `json:"id"`
}

// ImageImportReport is the image that was made.
type ImageImportReport struct {
	ID string `json:"Id"`
}

// ImageLoadReport names the images of an archive.
type ImageLoadReport struct {
	Names []string `json:"Names"`
}

// Info is what an engine says of itself.
type Info struct {
	Host    HostInfo  `json:"host"`
	Store   StoreInfo `json:"store"`
	Version struct {
		APIVersion string `json:"APIVersion"`
		Version    string `json:"Version"`
	} `json:"version"`
}

// HostInfo is an engine's machine.
type HostInfo struct {
	Arch              string   `json:"arch"`
	OS                string   `json:"os"`
	Kernel            string   `json:"kernel"`
	CgroupManager     string   `json:"cgroupManager"`
	CgroupVersion     string   `json:"cgroupVersion"`
	CgroupControllers []string `json:"cgroupControllers"`
	OCIRuntime        struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"ociRuntime"`
	Security struct {
		AppArmorEnabled bool `json:"apparmorEnabled"`
		Rootless        bool `json:"rootless"`
		SECCOMPEnabled  bool `json:"seccompEnabled"`
		SELinuxEnabled  bool `json:"selinuxEnabled"`
	} `json:"security"`
	// RootlessNetworkCmd is told from version 5 on.
	RootlessNetworkCmd string `json:"rootlessNetworkCmd"`
}

// StoreInfo is where an engine keeps images and containers.
type StoreInfo struct {
	GraphDriverName string `json:"graphDriverName"`
	GraphRoot       string `json:"graphRoot"`
}
