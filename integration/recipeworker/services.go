//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"zabra/recipes/discovery"
)

func (w *worker) discover(dir string) (*discovery.Discovery[string], error) {
	if w.discovery == nil {
		d, err := discovery.New[string](w.c, dir, discovery.Options{})
		if err != nil {
			return nil, err
		}
		w.discovery = d
	}
	return w.discovery, nil
}

// register makes an instance known: DIR NAME ID HOST PORT PAYLOAD.
func (w *worker) register(ctx context.Context, word []string) error {
	d, err := w.discover(word[0])
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(word[4])
	if err != nil {
		return err
	}
	i := discovery.Instance[string]{Name: word[1], ID: word[2], Address: word[3], Port: port, Payload: word[5]}
	if w.instances[i.ID], err = d.Register(ctx, i); err != nil {
		return err
	}
	w.say("REGISTERED")
	return nil
}

func (w *worker) unregister(ctx context.Context, id string) error {
	if err := w.instances[id].Close(ctx); err != nil {
		return err
	}
	w.say("UNREGISTERED")
	return nil
}

// watch says what instances there are, now and after each change: DIR NAME.
func (w *worker) watch(ctx context.Context, word []string) error {
	d, err := w.discover(word[0])
	if err != nil {
		return err
	}
	provider, err := d.Provider(ctx, word[1], discovery.ProviderOptions[string]{})
	if err != nil {
		return err
	}
	go func() {
		for {
			changed := provider.Changed()
			var seen []string
			for _, i := range provider.Instances() {
				seen = append(seen, fmt.Sprintf("%s=%s:%d/%s", i.ID, i.Address, i.Port, i.Payload))
			}
			slices.Sort(seen)
			w.say("SEES %s", strings.Join(seen, ","))
			<-changed
		}
	}()
	return nil
}
