//go:build linux

// Command recipeworker is a process that takes part in recipes through package recipes: recipeworker HOSTS SESSION_MS NAME. It is
// told what to do by lines on standard input and answers on standard output; integration/recipes_worker_test.go has the list.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"zabra/recipes"
	"zabra/recipes/barrier"
	"zabra/recipes/discovery"
)

// worker is the process.
type worker struct {
	c    *recipes.Client
	name string

	keep, stopping atomic.Bool
	freed          chan struct{}
	turns          int

	member    *barrier.Member
	discovery *discovery.Discovery[string]
	instances map[string]*discovery.Registration[string]

	mu sync.Mutex // for whole lines
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "recipeworker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want HOSTS SESSION_MS NAME, not %q", args)
	}
	ms, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c, err := recipes.Connect(ctx, strings.Split(args[0], ","), recipes.Options{SessionTimeout: time.Duration(ms) * time.Millisecond,
		Retry: recipes.Exponential(10*time.Millisecond, 200*time.Millisecond)})
	if err != nil {
		return err
	}
	defer c.Close()
	w := &worker{c: c, name: args[2], freed: make(chan struct{}, 1), instances: map[string]*discovery.Registration[string]{}}
	w.say("READY")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := w.obey(ctx, strings.Fields(lines.Text())); err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
	}
	return lines.Err()
}

func (w *worker) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}

// arguments is how many words each order has behind the verb, at least.
var arguments = map[string]int{"run": 3, "keep": 0, "free": 0, "stop": 0, "enter": 3, "leave": 1, "register": 6, "unregister": 6, "watch": 2}

func (w *worker) obey(ctx context.Context, word []string) error {
	if len(word) == 0 || len(word)-1 < arguments[word[0]] {
		return fmt.Errorf("too few words")
	}
	switch word[0] {
	case "run":
		turn, err := w.turnOf(word[1:])
		if err != nil {
			return err
		}
		w.stopping.Store(false)
		go w.takeTurns(ctx, turn)
	case "keep":
		w.keep.Store(true)
	case "free":
		w.freed <- struct{}{}
	case "stop":
		w.stopping.Store(true)
	case "enter":
		return w.enter(ctx, word[1:])
	case "leave":
		return w.leave(ctx, word[1])
	case "register":
		return w.register(ctx, word[1:])
	case "unregister":
		return w.unregister(ctx, word[3])
	case "watch":
		return w.watch(ctx, word[1:])
	default:
		return fmt.Errorf("unknown")
	}
	return nil
}

func (w *worker) takeTurns(ctx context.Context, turn func(context.Context) error) {
	for !w.stopping.Load() {
		if err := turn(ctx); err != nil {
			w.say("FAULT %v", err)
		}
	}
	w.say("STOPPED")
}

// enter comes into a double barrier: DIR JOURNAL MEMBERS.
func (w *worker) enter(ctx context.Context, word []string) error {
	members, err := strconv.Atoi(word[2])
	if err != nil {
		return err
	}
	double, err := barrier.NewDouble(w.c, word[0], members)
	if err != nil {
		return err
	}
	if w.member, err = double.Enter(ctx); err != nil {
		return err
	}
	if _, err := w.c.Set(ctx, word[1], []byte(w.name+" entered"), -1); err != nil {
		return err
	}
	w.say("ENTERED")
	return nil
}

func (w *worker) leave(ctx context.Context, journal string) error {
	if err := w.member.Leave(ctx); err != nil {
		return err
	}
	if _, err := w.c.Set(ctx, journal, []byte(w.name+" left"), -1); err != nil {
		return err
	}
	w.say("LEFT")
	return nil
}
