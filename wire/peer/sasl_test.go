package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/internal/sasl"
)

const saslWaitMax = 30 * time.Second

// saslPair is a connection between two servers.
func saslPair(t *testing.T) (client, server net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	for _, nc := range []net.Conn{client, server} {
		t.Cleanup(func() { nc.Close() })
		require.NoError(t, nc.SetDeadline(time.Now().Add(saslWaitMax)))
	}
	return client, server
}

func count(b []byte) { b[0]++ }

func logsIn(user, password string) *SASL {
	return &SASL{LogsIn: true, Login: func() sasl.Login { return sasl.Login{User: user, Password: password} }, Random: count}
}

func takesIn(requires bool) *SASL {
	return &SASL{Requires: requires, Password: sasl.Users{"zk": "secret"}.Password, Random: count}
}

// meet has two servers authenticate, each of which ends the connection if it does not like the other.
func meet(client, server net.Conn, c, s Authenticator) (clientConn, serverConn net.Conn, clientErr, serverErr error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		if serverConn, serverErr = s.Server(server); serverErr != nil {
			server.Close()
		}
	})
	if clientConn, clientErr = c.Client(client); clientErr != nil {
		client.Close()
	}
	wg.Wait()
	return clientConn, serverConn, clientErr, serverErr
}

// requireTalk sends something both ways.
func requireTalk(t *testing.T, a, b net.Conn) {
	t.Helper()
	for _, ends := range [][2]net.Conn{{a, b}, {b, a}} {
		_, err := ends[0].Write([]byte("talk"))
		require.NoError(t, err)
		got := make([]byte, 4)
		_, err = io.ReadFull(ends[1], got)
		require.NoError(t, err)
		require.Equal(t, "talk", string(got))
	}
}

func TestServersLogIn(t *testing.T) {
	for _, requires := range []bool{true, false} {
		client, server := saslPair(t)
		a, b, clientErr, serverErr := meet(client, server, logsIn("zk", "secret"), takesIn(requires))
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		requireTalk(t, a, b)
	}
}

func TestServersThatCannotLogIn(t *testing.T) {
	off := takesIn(true)
	off.Off = true
	tests := []struct {
		name                 string
		client               *SASL
		server               Authenticator
		clientWhy, serverWhy string
	}{
		{"wrong password", logsIn("zk", "hunter2"), takesIn(false), "the other server refused it", `wrong password of user "zk"`},
		{"unknown user", logsIn("hunter2", "secret"), takesIn(true), "the other server refused it", "a user that is not known here"},
		{"fips", logsIn("zk", "secret"), off, "the other server refused it", "fips-mode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, server := saslPair(t)
			_, _, clientErr, serverErr := meet(client, server, tt.client, tt.server)
			for err, want := range map[error]string{clientErr: tt.clientWhy, serverErr: tt.serverWhy} {
				var auth *AuthError
				require.ErrorAs(t, err, &auth)
				require.ErrorContains(t, err, want)
				require.NotContains(t, err.Error(), "hunter2")
				require.NotContains(t, err.Error(), "secret")
			}
		})
	}
}

// A server that only says it took the login, and does not know the password, is found out.
func TestServerWithoutThePassword(t *testing.T) {
	client, server := saslPair(t)
	go func() {
		for _, answer := range []struct {
			status int32
			token  string
		}{{saslGoesOn, `nonce="n",algorithm=md5-sess,realm="r"`}, {saslSuccess, "rspauth=00000000000000000000000000000000"}} {
			if _, _, err := readSASL(server); err != nil {
				return
			}
			if writeSASL(server, answer.status, []byte(answer.token)) != nil {
				return
			}
		}
	}()
	_, err := logsIn("zk", "secret").Client(client)
	require.ErrorIs(t, err, sasl.ErrServerUnproven)
}

// A server that does not log in is let in where that is not asked for, and told why it is not where it is.
func TestServerThatDoesNotLogIn(t *testing.T) {
	hello := Hello{From: 1, To: 2, Purpose: PurposeElection}
	client, server := saslPair(t)
	let := make(chan net.Conn, 1)
	go func() {
		nc, err := takesIn(false).Server(server)
		if err == nil {
			_, err = Answer(nc, Hello{From: 2, Purpose: PurposeElection}, nil)
		}
		if err != nil {
			t.Error(err)
		}
		let <- nc
	}()
	nc, err := (&SASL{}).Client(client)
	require.NoError(t, err)
	_, err = Greet(nc, hello)
	require.NoError(t, err)
	requireTalk(t, nc, <-let)

	client, server = saslPair(t)
	done := make(chan error, 1)
	go func() {
		_, err := takesIn(true).Server(server)
		server.Close()
		done <- err
	}()
	_, err = Greet(client, hello)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "set quorum.auth.learnerRequireSasl=true there")
	require.ErrorIs(t, <-done, errNoLogin)
}

// A server that wants to log in where nobody takes logins learns what is missing, and so does the other one.
func TestLoginWhereNoneIsTaken(t *testing.T) {
	client, server := saslPair(t)
	done := make(chan error, 1)
	go func() {
		_, err := Answer(server, Hello{From: 2, Purpose: PurposeElection}, nil)
		server.Close()
		done <- err
	}()
	_, err := logsIn("zk", "secret").Client(client)
	require.ErrorContains(t, err, "is quorum.auth.enableSasl true on that server?")
	require.ErrorContains(t, <-done, "a server wants to log in")
}

// What is no login, or too long for one, is refused before memory is taken for it.
func TestPacketsThatMakeNoSense(t *testing.T) {
	packet := func(mark uint64, status int32, length uint32, token string) []byte {
		b := binary.BigEndian.AppendUint64(nil, mark)
		b = binary.BigEndian.AppendUint32(b, uint32(status))
		return append(binary.BigEndian.AppendUint32(b, length), token...)
	}
	status, token, err := readSASL(bytes.NewReader(packet(saslMark, 1, 0xffffffff, "")))
	require.NoError(t, err)
	require.EqualValues(t, 1, status)
	require.Empty(t, token)
	whole := packet(saslMark, 0, 3, "abc")
	for n := range whole {
		_, _, err := readSASL(bytes.NewReader(whole[:n]))
		require.Error(t, err)
		require.Equal(t, n == 0, errors.Is(err, io.EOF), "%d bytes", n)
	}
	for name, b := range map[string][]byte{
		"mark": packet(saslMark+1, 0, 0, ""), "long": packet(saslMark, 0, sasl.TokenBytesMax+1, ""), "negative": packet(saslMark, 0, 0xfffffffe, ""),
	} {
		_, _, err := readSASL(bytes.NewReader(b))
		var auth *AuthError
		require.ErrorAs(t, err, &auth, name)
	}
	for name, b := range map[string][]byte{
		"failure": packet(saslMark, -1, 0, ""), "success": packet(saslMark, 1, 0, ""), "unknown state": packet(saslMark, 7, 0, ""),
		"initial response": packet(saslMark, 0, 3, "abc"), "half a login": packet(saslMark, 0, 0, ""),
	} {
		client, server := saslPair(t)
		_, err := client.Write(b)
		require.NoError(t, err)
		require.NoError(t, client.(*net.TCPConn).CloseWrite())
		_, err = takesIn(true).Server(server)
		var auth *AuthError
		require.ErrorAs(t, err, &auth, name)
	}
	client, server := saslPair(t)
	require.NoError(t, client.Close())
	_, err = takesIn(true).Server(server)
	require.ErrorIs(t, err, io.EOF, "a probe is no offence")
}

// FuzzSASL: nobody gets in by chance, and no stranger brings the server down.
func FuzzSASL(f *testing.F) {
	var first bytes.Buffer
	_ = writeSASL(&first, saslGoesOn, nil)
	_ = writeSASL(&first, saslGoesOn, []byte(`username="zk",nonce="x"`))
	f.Add(first.Bytes())
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		conn := &saidAll{in: bytes.NewReader(sent)}
		_, err := takesIn(true).Server(conn)
		require.Error(t, err)
		_, err = logsIn("zk", "secret").Client(&saidAll{in: bytes.NewReader(sent)})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	})
}

// saidAll is a connection whose other side has said everything already.
type saidAll struct {
	net.Conn
	in io.Reader
}

func (s *saidAll) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *saidAll) Write(b []byte) (int, error) { return len(b), nil }
