package recipes

// Outlive has a client give up its session, as when the lease has run out.
func Outlive(c *Client) { c.outlive(c.Session()) }
