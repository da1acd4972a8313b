//go:build linux

// Command opscapture records what the reference server answers to operators: every four-letter word and every command of the
// admin server, of a standalone server, of a leader, a follower and an observer, and of a member that is alone. The files it
// writes are those that the tests of package server compare with.
//
//	opscapture DIR
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"zabra/integration/harness"
	"zabra/integration/opsrecord"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: opscapture DIR")
		os.Exit(2)
	}
	if err := capture(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "opscapture:", err)
		os.Exit(1)
	}
}

// capture records both releases.
func capture(to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, kind := range []harness.Kind{harness.Apache395, harness.Apache380} {
		c := &capturer{kind: kind, to: to}
		for _, part := range []func() error{c.standalone, c.ensemble, c.alone, c.unlisted} {
			if err := part(); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	return nil
}

// capturer records one release.
type capturer struct {
	kind harness.Kind
	to   string
}

// settle is how long a server has to count what it has sent, before it is asked. Nothing tells when it has.
const settle = time.Second

const waitLimit = 60 * time.Second

// target is a server with the port of its admin server.
type target struct {
	*harness.Server
	adminPort int
}

// settingsOf are the conversation's settings and those of the admin server on a port of its own.
func settingsOf() (settings map[string]string, adminPort int, err error) {
	adminPort, err = harness.FreePort()
	settings = opsrecord.Settings()
	settings["admin.enableServer"] = "true"
	settings["admin.serverAddress"] = "127.0.0.1"
	settings["admin.serverPort"] = fmt.Sprint(adminPort)
	return settings, adminPort, err
}

func (c *capturer) standalone() error {
	return inFolder(func(dir string) error {
		settings, port, err := settingsOf()
		if err != nil {
			return err
		}
		s, err := harness.New(c.kind, dir, settings)
		if err != nil {
			return err
		}
		defer s.Kill()
		if err := s.Start(); err != nil {
			return err
		}
		scene, err := opsrecord.Play(s.Addr())
		if err != nil {
			return err
		}
		defer scene.Close()
		time.Sleep(settle)
		return c.record(target{s, port}, "standalone", scene.Sessions(), false)
	})
}

// ensembleSize is three voters and an observer.
const ensembleSize = 4

func (c *capturer) ensemble() error {
	return inFolder(func(dir string) error {
		e, targets, err := c.prepare(dir, harness.Plan{Kind: c.kind, Servers: ensembleSize, Observers: 1})
		if err != nil {
			return err
		}
		defer e.Close()
		if err := e.Start(); err != nil {
			return err
		}
		leader, err := e.WaitLeader()
		if err != nil {
			return err
		}
		follower, observer := (leader+1)%(ensembleSize-1), ensembleSize-1
		addrs := e.Addrs()
		scene, err := opsrecord.Play(addrs[leader], addrs[follower], addrs[observer])
		if err != nil {
			return err
		}
		defer scene.Close()
		time.Sleep(settle)
		for _, part := range []struct {
			role string
			at   int
		}{{"leader", leader}, {"follower", follower}, {"observer", observer}} {
			if err := c.record(targets[part.at], part.role, scene.Sessions(), true); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepare makes an ensemble whose members have admin servers.
func (c *capturer) prepare(dir string, plan harness.Plan) (*harness.Ensemble, []target, error) {
	e, err := harness.NewEnsemble(dir, plan)
	if err != nil {
		return nil, nil, err
	}
	var targets []target
	for _, m := range e.Members {
		settings, port, err := settingsOf()
		if err == nil {
			err = m.Set(settings)
		}
		if err != nil {
			e.Close()
			return nil, nil, err
		}
		targets = append(targets, target{m.Server, port})
	}
	return e, targets, nil
}

// alone records a member of three whose others are down.
func (c *capturer) alone() error {
	return inFolder(func(dir string) error {
		e, targets, err := c.prepare(dir, harness.Plan{Kind: c.kind, Servers: 3})
		if err != nil {
			return err
		}
		defer e.Close()
		if err := e.Members[0].Launch(); err != nil {
			return err
		}
		err = harness.Wait(waitLimit, "the client port is open", func() bool {
			answer, err := harness.FourLetter(e.Members[0].Addr(), "ruok")
			return err == nil && answer == "imok"
		})
		if err != nil {
			return err
		}
		time.Sleep(settle)
		return c.record(targets[0], "alone", nil, false)
	})
}

// unlisted records the words of a server that says nothing of which it answers.
func (c *capturer) unlisted() error {
	return inFolder(func(dir string) error {
		s, err := harness.New(c.kind, dir, map[string]string{"4lw.commands.whitelist": "srvr"})
		if err != nil {
			return err
		}
		if err := s.Set(map[string]string{"4lw.commands.whitelist": ""}); err != nil {
			return err
		}
		defer s.Kill()
		if err := s.Start(); err != nil {
			return err
		}
		answers, err := opsrecord.AskWords(s.Addr(), slices.Concat(opsrecord.Words, opsrecord.ResettingWords))
		if err != nil {
			return err
		}
		return c.write("unlisted", nil, answers, s)
	})
}

// record asks everything and writes the file.
func (c *capturer) record(s target, role string, sessions []int64, brief bool) error {
	base := fmt.Sprint("http://127.0.0.1:", s.adminPort)
	err := harness.Wait(waitLimit, "the admin server answers", func() bool {
		_, err := opsrecord.Get(base + "/commands/ruok")
		return err == nil
	})
	if err != nil {
		return err
	}
	var answers []opsrecord.Answer
	for _, part := range []func() ([]opsrecord.Answer, error){
		func() ([]opsrecord.Answer, error) { return opsrecord.AskWords(s.Addr(), opsrecord.Words) },
		func() ([]opsrecord.Answer, error) { return opsrecord.AskHTTP(base, opsrecord.Requests(brief)) },
		func() ([]opsrecord.Answer, error) { return opsrecord.AskWords(s.Addr(), opsrecord.ResettingWords) },
		func() ([]opsrecord.Answer, error) { return opsrecord.AskHTTP(base, opsrecord.ResettingRequests) },
	} {
		list, err := part()
		if err != nil {
			return err
		}
		answers = append(answers, list...)
	}
	return c.write(role, sessions, answers, s.Server)
}

func (c *capturer) write(role string, sessions []int64, answers []opsrecord.Answer, s *harness.Server) error {
	for i := range answers {
		answers[i].Text = scrub(answers[i].Text, s.Dir)
	}
	r := opsrecord.Recording{Heading: opsrecord.Heading{From: string(c.kind), Role: role, Sessions: sessions}, Answers: answers}
	version := strings.TrimPrefix(string(c.kind), "apache-")
	name := filepath.Join(c.to, version+"-"+role+".jsonl")
	fmt.Printf("%s: %d answers\n", name, len(answers))
	return r.Write(name)
}

// machineFields say where the reference server is installed and on what it runs.
var machineFields = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`(java\.class\.path(?:=|" : "))[^\n"]*`), "${1}/opt/zookeeper/lib/*"},
	{regexp.MustCompile(`(host\.name(?:=|" : "))[^\n"]*`), "${1}zookeeper-host"},
	{regexp.MustCompile(`(os\.version(?:=|" : "))[^\n"]*`), "${1}6.1.0-13-amd64"},
}

// scrub takes out what belongs to this machine and to no server.
func scrub(text, dir string) string {
	for _, field := range machineFields {
		text = field.find.ReplaceAllString(text, field.put)
	}
	return strings.NewReplacer(dir, "/var/lib/zookeeper", harness.Cache(), "/opt/zookeeper", harness.Root(), "/opt/zookeeper").Replace(text)
}

func inFolder(f func(dir string) error) error {
	dir, err := os.MkdirTemp("", "opscapture")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return f(dir)
}
