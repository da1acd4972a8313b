package recipes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

// A client, a namespace, and a transaction.
func Example() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, recipestest.Servers(), recipes.Options{SessionTimeout: 5 * time.Second, Namespace: "/shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	results, err := c.Txn().
		Create("/orders", nil, zk.FlagPersistent).
		Create("/orders/order-", []byte("2 apples"), zk.FlagSequence).
		Commit(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	data, _, err := c.Get(ctx, results[1].String)
	fmt.Println(results[1].String, "=", string(data), err)
	// Output: /orders/order-0000000000 = 2 apples <nil>
}
