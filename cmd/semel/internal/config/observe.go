package config

// Observation are the options of a proxy that observes.
type Observation struct {
	Observe     *bool `yaml:"observe" name:"observe" negatable:"" group:"Observing" help:"Forward every request unchanged, and count what the proxy would have done; see above. No store is used."`
	ObserveKeys *int  `yaml:"observe-keys" name:"observe-keys" placeholder:"N" group:"Observing" help:"How many keys an observing proxy remembers (default 100000, in less than 100 MB). Then it forgets the older half of them."`
}

// observation resolves the options of an observing proxy.
func (r *resolver) observation(c *Config, o *Observation) {
	c.Observe, c.ObserveKeys = or(o.Observe, false), or(o.ObserveKeys, 100_000)
	r.count("observe-keys", int64(c.ObserveKeys), 2, 100_000_000)
}
