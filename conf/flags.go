package conf

import "strings"

// JVMProperties picks the -D properties out of JVM arguments as a shell would hand them over: split at blanks, quotes
// mean nothing. Everything else, such as -Xmx, is skipped. The last of several equal names counts.
func JVMProperties(arguments string) map[string]string {
	properties := map[string]string{}
	for _, arg := range strings.Fields(arguments) {
		if text, ok := strings.CutPrefix(arg, "-D"); ok {
			name, value, _ := strings.Cut(text, "=")
			if name != "" {
				properties[name] = value
			}
		}
	}
	return properties
}
