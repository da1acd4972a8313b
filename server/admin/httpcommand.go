package admin

// HTTPCommand is a command as the admin server offers it.
type HTTPCommand struct {
	Name    string   // primary name, which the answer shows
	Aliases []string // further names
	// Post says that the command is a POST; otherwise it is a GET, and a HEAD too.
	Post bool
	// Down is Work if the command also runs while the server does not serve.
	Down WhileDown
	// Run carries the command out. It may block for as long as the request's connection lives.
	Run     func(src Source, r *Request) *Response
	Purpose string // one phrase for help texts
}
