package lock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"zabra/recipes"
	"zabra/recipes/lock"
	"zabra/recipes/recipestest"
)

// connect is what a program does once.
func connect(ctx context.Context, app string) *recipes.Client {
	c, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{SessionTimeout: 5 * time.Second, Namespace: "/" + app})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// A lock is held until Unlock or until it is lost. The resource sees to late holders by the token.
func ExampleMutex() {
	ctx := context.Background()
	c := connect(ctx, "mutex")
	defer c.Close()
	var account lock.Fence // stands beside what the lock protects
	balance := 100

	guard, err := lock.NewMutex(c, "/locks/account-7", lock.Options{Identity: []byte("worker 1")}).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Unlock(ctx)
	work, cancel := guard.Context(ctx) // ends when the lock is lost
	defer cancel()
	err = account.Do(guard.Token(), func() error {
		balance -= 30
		return work.Err()
	})
	fmt.Println(balance, err)

	err = account.Check(guard.Token() - 1) // an older holder comes late
	fmt.Println(err != nil)
	// Output:
	// 70 <nil>
	// true
}

// A holder can be asked to make way.
func ExampleRevoke() {
	ctx := context.Background()
	c := connect(ctx, "revoke")
	defer c.Close()
	batch := lock.NewMutex(c, "/locks/report", lock.Options{Identity: []byte("batch job")})
	guard, err := batch.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	who, err := batch.Participants(ctx) // by anybody, anywhere
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s holds it\n", who[0].Identity)
	if err := lock.Revoke(ctx, c, who[0].Path); err != nil {
		fmt.Println(err)
	}

	select {
	case <-guard.Revoked():
		fmt.Println("asked to stop:", guard.Unlock(ctx))
	case <-guard.Lost():
	}
	// Output:
	// batch job holds it
	// asked to stop: <nil>
}

// A writer becomes a reader without letting another writer in between.
func ExampleRWMutex() {
	ctx := context.Background()
	c := connect(ctx, "rwmutex")
	defer c.Close()
	m := lock.NewRWMutex(c, "/locks/catalogue", lock.Options{})
	writer, err := m.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.TryRLock(ctx)
	fmt.Println("while writing:", err)
	reader, err := m.Downgrade(ctx, writer)
	if err != nil {
		fmt.Println(err)
		return
	}
	other, err := m.TryRLock(ctx)
	fmt.Println("while reading:", err)
	_ = other.Unlock(ctx)
	_ = reader.Unlock(ctx)
	// Output:
	// while writing: lock: held by another
	// while reading: <nil>
}

// Two downloads at a time, whatever the number of machines.
func ExampleSemaphore() {
	ctx := context.Background()
	c := connect(ctx, "semaphore")
	defer c.Close()
	downloads := lock.NewSemaphore(c, "/downloads", 2, lock.Options{})
	for range 3 {
		_, err := downloads.TryAcquire(ctx) // Acquire waits
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// lock: held by another
}

// Two accounts at once; who locks the same two in the other order does not block this one for good.
func ExampleMulti() {
	ctx := context.Background()
	c := connect(ctx, "multi")
	defer c.Close()
	from, to := lock.NewMutex(c, "/locks/account-9", lock.Options{}), lock.NewMutex(c, "/locks/account-4", lock.Options{})
	guards, err := lock.NewMulti(from, to).Lock(ctx)
	fmt.Println(len(guards), err)
	fmt.Println(guards.Unlock(ctx))
	// Output:
	// 2 <nil>
	// <nil>
}

// What lies in ZooKeeper itself is changed together with the check of the token.
func ExampleNodeFence() {
	ctx := context.Background()
	c := connect(ctx, "fence")
	defer c.Close()
	if _, err := c.Create(ctx, "/config", []byte("old"), 0); err != nil {
		fmt.Println(err)
		return
	}
	guard, err := lock.NewMutex(c, "/locks/config", lock.Options{}).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Unlock(ctx)
	fence := lock.NewNodeFence(c, "/config/fence")
	_, err = fence.Commit(ctx, guard.Token(), func(txn *recipes.Txn) { txn.Set("/config", []byte("new"), -1) })
	data, _, _ := c.Get(ctx, "/config")
	fmt.Println(string(data), err)
	// Output: new <nil>
}
