/* What the models have in common: how a rule is checked, and how a place is
   marked as reached.

   rule(name, condition) asserts under a name, so that a verdict says which
   rule was broken. -DONLY=R_name checks one rule and no other.
   mark(name) is a place that a search must reach, or what it says of the rest
   is empty. -DNEVER=M_name claims that it is never reached. */

#ifndef N
#define N 3 /* callers */
#endif

#ifdef ONLY
#define wanted(r) (ONLY == r)
#else
#define wanted(r) true
#endif

#ifdef NEVER
#define mark(m) never_reached = (NEVER != M_##m); assert(never_reached)
#else
#define mark(m) printf(#m)
#endif

/* A rule's name is a variable that is not part of the state. */
#define rule(name, condition) name = (!wanted(R_##name) || (condition)); assert(name)

hidden byte never_reached;
