package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// Word asks a server for one of its four-letter words, such as srvr, and returns the answer as it came. It makes a
// connection of its own.
func Word(ctx context.Context, addr, word string) (string, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(nc, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(nc, wordAnswerBytesMax+1))
	switch {
	case err != nil:
		return string(answer), err
	case len(answer) > wordAnswerBytesMax:
		return "", fmt.Errorf("client: answer to %s is longer than %d bytes", word, wordAnswerBytesMax)
	}
	return string(answer), nil
}
