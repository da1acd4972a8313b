package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"zabra/recipes/schema"
)

func Example() {
	s, err := schema.New(true,
		schema.Rule{
			Name: "settings", Path: "/app/settings/*", Doc: "one setting each, as JSON", Ephemeral: schema.Cannot, Keep: true,
			Data: func(_ string, data []byte) error {
				if !json.Valid(data) {
					return errors.New("it is no JSON")
				}
				return nil
			},
		},
		schema.Rule{Name: "workers", Path: "/app/workers/*", Doc: "who is at work", Ephemeral: schema.Must},
	)
	if err != nil {
		panic(err)
	}
	// schema.Wrap(client, s) is a client that makes these checks before it sends anything.
	fmt.Println(s.CheckSet("/app/settings/limit", []byte("150")))
	fmt.Println(s.CheckSet("/app/settings/limit", []byte("a lot")))
	fmt.Println(s.CheckDelete("/app/settings/limit"))
	fmt.Println(s.CheckCreate("/app/workers/w1", nil, 0))
	// Output:
	// <nil>
	// set /app/settings/limit: rule "settings": schema: the data are not allowed: it is no JSON
	// delete /app/settings/limit: rule "settings": schema: the node cannot be deleted
	// create /app/workers/w1: rule "workers": schema: an ephemeral node: it must be
}
