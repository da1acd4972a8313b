//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"zabra/integration/harness"
)

// machine is what the comparison was made on and with.
type machine struct {
	CPU         string    `json:"cpu"`
	Cores       int       `json:"cores"`
	MemoryGiB   float64   `json:"memory_gib"`
	Kernel      string    `json:"kernel"`
	FileSystem  string    `json:"file_system"`
	Disk        string    `json:"disk"`
	SyncUs      float64   `json:"fdatasync_us"` // median of writing 4 KiB and making it durable
	Virtual     bool      `json:"virtual"`
	Zabra       string    `json:"zabra"`
	Reference   string    `json:"reference"`
	Java        string    `json:"java"`
	Quick       bool      `json:"quick"`
	MeasureSec  float64   `json:"measure_s"`
	WarmupSec   float64   `json:"warmup_s"`
	JVMWarmup   float64   `json:"jvm_warmup_s"`
	KillsPerRun int       `json:"kills"`
	At          time.Time `json:"at"`
}

// writeMachine notes what the comparison runs on.
func (c *comparison) writeMachine() error {
	m := machine{Cores: runtime.NumCPU(), Reference: string(c.reference), Quick: c.quick, At: time.Now().UTC(),
		MeasureSec: c.span.measure.Seconds(), WarmupSec: c.span.warmup.Seconds(), JVMWarmup: c.jvmWarmup.Seconds(), KillsPerRun: c.scale.kills}
	m.CPU, m.Virtual = processor()
	m.MemoryGiB = memoryGiB()
	var name syscall.Utsname
	if err := syscall.Uname(&name); err != nil {
		return os.NewSyscallError("uname", err)
	}
	m.Kernel = "Linux " + text(name.Release[:])
	m.FileSystem, m.Disk = fileSystem(c.data)
	var err error
	if m.SyncUs, err = syncTime(c.data); err != nil {
		return err
	}
	m.Zabra = firstLines(2, zabraBinary(), "version")
	m.Java = firstLines(1, "java", "-version")
	out, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.results, machineFile), append(out, '\n'), 0o644)
}

func readMachine(dir string) (m machine, err error) {
	text, err := os.ReadFile(filepath.Join(dir, machineFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("there are no results in %s: run integration/compare.sh, or make compare", dir)
	}
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

func text(chars []int8) string {
	var b strings.Builder
	for _, c := range chars {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// processor returns the model of the CPU, and whether a hypervisor is below.
func processor() (model string, virtual bool) {
	info, _ := os.ReadFile("/proc/cpuinfo") // without it the document says unknown
	model = "unknown"
	for _, line := range strings.Split(string(info), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name":
			model = strings.TrimSpace(value)
		case "flags":
			virtual = strings.Contains(value+" ", " hypervisor ")
		}
	}
	return model, virtual
}

func memoryGiB() float64 {
	info, _ := os.ReadFile("/proc/meminfo") // without it the document says 0
	var kib float64
	_, _ = fmt.Sscanf(string(info), "MemTotal: %f kB", &kib)
	return kib / (1 << 20)
}

// fileSystem returns the type of the file system that dir is on, and what is known of the disk below it.
func fileSystem(dir string) (kind, disk string) {
	kind, disk = "unknown", "unknown"
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err != nil {
		return kind, disk
	}
	major, minor := stat.Dev>>8&0xfff, stat.Dev&0xff|stat.Dev>>12&0xfff00
	device := fmt.Sprintf("%d:%d", major, minor)
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for _, line := range strings.Split(string(mounts), "\n") {
		fields, rest, found := strings.Cut(line, " - ")
		if f := strings.Fields(fields); found && len(f) > 2 && f[2] == device {
			kind = strings.Fields(rest + " ")[0]
		}
	}
	return kind, diskKind("/sys/dev/block/" + device)
}

// diskKind says what is known of a block device. A virtual disk does not know what is below it.
func diskKind(base string) string {
	disk := "unknown"
	if target, err := filepath.EvalSymlinks(base); err == nil {
		base = target
		disk = filepath.Base(base)
		if strings.HasPrefix(disk, "vd") {
			return "virtual disk (virtio)"
		}
		if strings.HasPrefix(disk, "nvme") {
			disk = "NVMe"
		}
	}
	for _, queue := range []string{base + "/queue/rotational", filepath.Dir(base) + "/queue/rotational"} {
		switch flag, err := os.ReadFile(queue); {
		case err != nil:
		case strings.TrimSpace(string(flag)) == "0":
			return disk + ", not rotational"
		default:
			return disk + ", rotational"
		}
	}
	return disk
}

const (
	syncSamples = 200
	syncBytes   = 4 << 10
)

// syncTime measures what making a small write durable takes, in microseconds.
func syncTime(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, syncSamples*syncBytes)); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	block := make([]byte, syncBytes)
	times := make([]float64, syncSamples)
	for i := range times {
		began := time.Now()
		if _, err := f.WriteAt(block, int64(i*syncBytes)); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, os.NewSyscallError("fdatasync", err)
		}
		times[i] = float64(time.Since(began).Microseconds())
	}
	return median(times), nil
}

// firstLines returns the beginning of what a command prints, "unknown" when it cannot be run.
func firstLines(n int, name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "unknown"
	}
	lines := strings.SplitN(strings.TrimSpace(string(out)), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], ", ")
}

// referenceName is the reference server in words.
func referenceName(kind harness.Kind) string {
	return "Apache ZooKeeper " + strings.TrimPrefix(string(kind), "apache-")
}
