package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"zabra/conf"
	"zabra/internal/entrypoint"
)

const deploy = "../../deploy"

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, name))
	require.NoError(t, err)
	return string(text)
}

// requireCommand checks that a command line names a verb of the program and only flags that the verb has.
func requireCommand(t *testing.T, line []string) {
	t.Helper()
	require.Equal(t, "zabra", filepath.Base(line[0]), "%q", line)
	cmd, rest, err := newRoot().Find(line[1:])
	require.NoError(t, err, "%q", line)
	require.NotEqual(t, "zabra", cmd.Name(), "%q names no verb", line)
	if !cmd.DisableFlagParsing {
		require.NoError(t, cmd.ParseFlags(rest), "%q", line)
		require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), "%q", line)
	}
}

// configOf makes the configuration that the entry point of a container makes of its environment, and reads it as the server
// number id would.
func configOf(t *testing.T, environ []string, hostName string, id int64) *conf.Config {
	t.Helper()
	root := t.TempDir()
	environ = append(slices.Clone(environ), "ZOO_CONF_DIR="+root+"/conf", "ZOO_DATA_DIR="+root+"/data", "ZOO_DATA_LOG_DIR="+root+"/datalog", "HOSTNAME="+hostName)
	s, err := entrypoint.FromEnvironment(environ, "")
	require.NoError(t, err)
	notes, err := s.Prepare()
	require.NoError(t, err)
	require.Empty(t, notes)
	c, err := conf.Load(s.ConfigPath(), nil)
	require.NoError(t, err)
	require.EqualValues(t, id, c.MyID)
	return c
}

// composeFile is what is looked at in compose.yaml.
type composeFile struct {
	Services map[string]struct {
		Hostname    string
		Ports       []string
		Environment map[string]string
		Volumes     []string
		StopGrace   string `yaml:"stop_grace_period"`
		Healthcheck struct{ Test []string }
		Build       struct{ Context, Dockerfile string }
	}
	Volumes map[string]any
}

func TestCompose(t *testing.T) {
	var file composeFile
	require.NoError(t, yaml.Unmarshal([]byte(deployed(t, "compose.yaml")), &file))
	require.Len(t, file.Services, 3)
	hostPorts := map[string]bool{}
	for name, s := range file.Services {
		require.Equal(t, name, s.Hostname)
		require.FileExists(t, filepath.Join(deploy, s.Build.Context, s.Build.Dockerfile))
		require.Equal(t, "20s", s.StopGrace)
		require.Equal(t, "CMD", s.Healthcheck.Test[0])
		requireCommand(t, s.Healthcheck.Test[1:])
		for _, v := range s.Volumes {
			volume, mount, _ := strings.Cut(v, ":")
			require.Contains(t, file.Volumes, volume)
			require.Contains(t, []string{"/data", "/datalog"}, mount)
		}
		var environ []string
		for k, v := range s.Environment {
			environ = append(environ, k+"="+v)
		}
		var id int64
		_, err := fmt.Sscanf(name, "zoo%d", &id)
		require.NoError(t, err)
		c := configOf(t, environ, name, id)
		require.Len(t, c.Ensemble.Voters(), 3)
		own, _ := c.Ensemble.Member(c.MyID)
		require.Equal(t, name, own.Addresses[0].Host)
		require.True(t, c.FourLetterWord("ruok"))
		for _, p := range s.Ports {
			outside, inside, _ := strings.Cut(p, ":")
			require.Equal(t, fmt.Sprint(c.ClientPort), inside)
			require.False(t, hostPorts[outside])
			hostPorts[outside] = true
		}
	}
}

// object is what is looked at in an object of Kubernetes.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		ClusterIP       string         `yaml:"clusterIP"`
		PublishNotReady bool           `yaml:"publishNotReadyAddresses"`
		Selector        map[string]any `yaml:"selector"`
		MaxUnavailable  int            `yaml:"maxUnavailable"`
		ServiceName     string         `yaml:"serviceName"`
		Replicas        int
		PodManagement   string `yaml:"podManagementPolicy"`
		Ports           []struct {
			Name, TargetPort string
			Port             int
		}
		Template struct {
			Metadata struct{ Labels map[string]any }
			Spec     struct {
				GraceSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers   []podContainer
				Volumes      []struct{ Name string }
			}
		}
		VolumeClaims []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type podContainer struct {
	Command, Args []string
	Ports         []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Env          []struct{ Name, Value string }
	Startup      probe                              `yaml:"startupProbe"`
	Liveness     probe                              `yaml:"livenessProbe"`
	Readiness    probe                              `yaml:"readinessProbe"`
	VolumeMounts []struct{ Name, MountPath string } `yaml:"volumeMounts"`
}

type probe struct{ Exec struct{ Command []string } }

func objects(t *testing.T, name string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for dec := yaml.NewDecoder(bytes.NewReader([]byte(deployed(t, name)))); ; {
		var o object
		err := dec.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if o.Kind != "" { // comments before the first one
			all[o.Kind+"/"+o.Metadata.Name] = o
		}
	}
}

func TestKubernetes(t *testing.T) {
	all := objects(t, "kubernetes/zabra.yaml")
	require.Len(t, all, 4)
	set := all["StatefulSet/zabra"]
	headless, client, budget := all["Service/"+set.Spec.ServiceName], all["Service/zabra"], all["PodDisruptionBudget/zabra"]
	labels := set.Spec.Template.Metadata.Labels
	require.NotEmpty(t, labels)
	require.Equal(t, labels, headless.Spec.Selector)
	require.Equal(t, labels, client.Spec.Selector)
	require.Equal(t, map[string]any{"matchLabels": labels}, budget.Spec.Selector)
	require.Equal(t, map[string]any{"matchLabels": labels}, set.Spec.Selector)
	require.Equal(t, "None", headless.Spec.ClusterIP)
	require.True(t, headless.Spec.PublishNotReady, "nobody is ready before the servers have found each other")
	require.Equal(t, "Parallel", set.Spec.PodManagement, "for the same reason")
	require.Equal(t, (set.Spec.Replicas-1)/2, budget.Spec.MaxUnavailable)
	require.Greater(t, set.Spec.Template.Spec.GraceSeconds, int(shutdownTime.Seconds()))

	require.Len(t, set.Spec.Template.Spec.Containers, 1)
	c := set.Spec.Template.Spec.Containers[0]
	requireCommand(t, append(slices.Clone(c.Command), c.Args...))
	for _, p := range []probe{c.Startup, c.Liveness, c.Readiness} {
		requireCommand(t, p.Exec.Command)
	}
	require.Contains(t, c.Readiness.Exec.Command, "--ready")
	require.NotContains(t, c.Liveness.Exec.Command, "--ready", "a server without a quorum must not be killed for it")

	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, s := range []object{headless, client} {
		for _, p := range s.Spec.Ports {
			require.Equal(t, p.Port, ports[p.Name])
		}
	}
	requirePods(t, set, c, ports)
	volumes := []string{set.Spec.VolumeClaims[0].Metadata.Name, set.Spec.Template.Spec.Volumes[0].Name}
	for _, m := range c.VolumeMounts {
		require.Contains(t, volumes, m.Name)
	}
}

// requirePods checks the configuration of each pod.
func requirePods(t *testing.T, set object, c podContainer, ports map[string]int) {
	t.Helper()
	var environ []string
	for _, e := range c.Env {
		environ = append(environ, e.Name+"="+e.Value)
	}
	for i := range set.Spec.Replicas {
		name := fmt.Sprintf("%s-%d", set.Metadata.Name, i)
		cfg := configOf(t, environ, name, int64(i)+1)
		require.Len(t, cfg.Ensemble.Voters(), set.Spec.Replicas)
		own, _ := cfg.Ensemble.Member(cfg.MyID)
		require.Equal(t, name+"."+set.Spec.ServiceName, own.Addresses[0].Host)
		require.Equal(t, ports, map[string]int{"client": cfg.ClientPort, "quorum": own.Addresses[0].QuorumPort, "election": own.Addresses[0].ElectionPort})
		require.True(t, cfg.QuorumListenOnAllIPs)
		require.Zero(t, cfg.ElectionPortBindRetry)
	}
}

// instructions are those of a Dockerfile, with continued lines joined.
func instructions(text string) (list [][2]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(name, "#") {
			list = append(list, [2]string{name, strings.TrimSpace(rest)})
		}
	}
	return list
}

func TestDockerfile(t *testing.T) {
	list := instructions(deployed(t, "Dockerfile"))
	final := list[slices.IndexFunc(list, func(i [2]string) bool { return i == [2]string{"FROM", "scratch"} }):]
	value := map[string]string{}
	for _, i := range final {
		require.NotEqual(t, "RUN", i[0], "there is no shell in the image")
		value[i[0]] = i[1]
	}
	require.Equal(t, "1000:1000", value["USER"])
	require.Equal(t, "SIGTERM", value["STOPSIGNAL"])
	require.Equal(t, `["/data", "/datalog"]`, value["VOLUME"])
	require.Equal(t, "2181 2888 3888 8080", value["EXPOSE"])
	words := func(text string) (words []string) {
		require.NoError(t, json.Unmarshal([]byte(text), &words), text)
		return words
	}
	requireCommand(t, append(words(value["ENTRYPOINT"]), words(value["CMD"])...))
	_, check, _ := strings.Cut(value["HEALTHCHECK"], "CMD ")
	requireCommand(t, words(check))

	// What is copied from the first stage is made there, and the links have the names that the program knows.
	build := deployed(t, "Dockerfile")
	for _, name := range entrypoint.StandIns {
		require.Contains(t, build, "ln -s zabra "+name)
	}
	require.Contains(t, build, "CGO_ENABLED=0 go build")
	require.FileExists(t, filepath.Join(deploy, "Dockerfile.dockerignore"))
	goMod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(goMod)
	require.Equal(t, "golang:"+string(goVersion[1])+" AS build", list[0][1])
}

func TestSystemdUnit(t *testing.T) {
	values := map[string][]string{}
	for line := range strings.SplitSeq(deployed(t, "systemd/zabra.service"), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			values[key] = append(values[key], value)
		}
	}
	require.Len(t, values["ExecStart"], 1)
	requireCommand(t, strings.Fields(values["ExecStart"][0]))
	require.NotContains(t, values, "ExecStartPre", "RestartPreventExitStatus looks at the main process only")
	require.Equal(t, []string{fmt.Sprintf("%d %d", exitConfig, exitDataDir)}, values["RestartPreventExitStatus"])
	require.Equal(t, []string{"on-failure"}, values["Restart"])
	require.Equal(t, []string{"exec"}, values["Type"], "the server does not notify systemd")
	require.Equal(t, []string{"SIGTERM"}, values["KillSignal"])
	require.Equal(t, []string{"/bin/kill -HUP $MAINPID"}, values["ExecReload"])
}
