// The search puts guides and reference before the records of decisions and the evidence.
var Scorer = {
  score: ([page, , , , score]) => (/^(decisions\/|evidence$)/.test(page) ? score - 20 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
