package museum

// Redis: each change is a script, and each script compares what it changes.
var redises = []Mutant{
	{
		Name: "Redis: a settlement compares no owner", Rule: "rule 4", Parent: "M2: delete without owner (Powertools)",
		File: "store/redisstore/script.go", Package: fast, Run: "TestConformance$",
		Old: "\telseif sub(v, 1, 25) ~= ARGV[arg] then\n", New: "\telseif false then\n",
	},
	{
		Name: "Redis: a swap compares no fence", Rule: "rule 3", Parent: "M5: orphan recovery without CAS (#5714)",
		File: "store/redisstore/script.go", Package: fast, Run: "TestConformance$",
		Old: "sub(v, 1, 25) ~= ARGV[arg + 2] or", New: "sub(v, 1, 17) ~= sub(ARGV[arg + 2], 1, 17) or",
	},
	{
		Name: "Redis: a sweep forgets the highest fence", Rule: "rule 5",
		File: "store/redisstore/script.go", Package: fast, Run: "TestConformance$",
		Old: "\t\t\tcall('DEL', KEYS[i])\n\t\t\traise(unpack_('>I8', head, 18))\n", New: "\t\t\tcall('DEL', KEYS[i])\n",
	},
	{
		Name: "Redis: an own claim is somebody else's", Rule: "rule 2", Parent: "M10: own claim read as conflict (go-redis#2985)",
		File: "store/redisstore/row.go", Package: fast, Run: "TestConformance$",
		Old: "won := p.Owner != store.Owner{} && r.Owner == p.Owner && r.State == p.State", New: "won := p.Owner != store.Owner{} && r.Owner == p.Owner && r.State == p.State && store.Micros(r.Updated) == now",
	},
	{
		Name: "Redis: what a caller left in flight is written over", Rule: "rule 2",
		File: "store/redisstore/call.go", Package: fast, Run: "TestACallThatIsLeftInFlight",
		Old: "if c.answered && cap(c.texts)", New: "if cap(c.texts)",
	},
}
