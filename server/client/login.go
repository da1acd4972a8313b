package client

import (
	"context"
	"crypto/rand"
	"fmt"

	"zabra/internal/sasl"
	"zabra/wire"
)

// SASLLogin logs the connection in as a user, by SASL with DIGEST-MD5. It should be the first thing that is done with a
// connection. If the server refuses, the error is wire.CodeAuthFailed in the sense of errors.Is, or wire.CodeAuthRequired, and
// the connection ends, unless the server keeps such connections. A server that knows no logins, or cannot prove that it knows
// the password, fails with wire.CodeAuthFailed as well.
func (c *Client) SASLLogin(ctx context.Context, login sasl.Login) error {
	exchange := sasl.NewClient(sasl.TargetClient, random, login)
	challenge, err := c.SASL(ctx, []byte{})
	if err != nil {
		return err
	}
	if challenge == nil {
		return fmt.Errorf("%w: the server does not take logins by SASL: it has no users, or not this mechanism", wire.CodeAuthFailed)
	}
	response, err := exchange.Respond(challenge)
	if err != nil {
		return fmt.Errorf("%w: %w", wire.CodeAuthFailed, err)
	}
	last, err := c.SASL(ctx, response)
	switch {
	case err != nil:
		return err
	case last == nil:
		return fmt.Errorf("%w: wrong user or password, though the server keeps the connection", wire.CodeAuthFailed)
	}
	if err := exchange.Verify(last); err != nil {
		return fmt.Errorf("%w: %w", wire.CodeAuthFailed, err)
	}
	return nil
}

// random fills b. It cannot fail: the process ends if the system has no randomness.
func random(b []byte) { _, _ = rand.Read(b) }
