import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Comparison, Difference, UnlistedRoute } from './compare.ts';
import type { ListForm } from './index.ts';

/** Differences between the default catalogue and lists that others keep, each with its reason. */

/** It holds for these two values alone: when one of them changes, somebody looks again. */
export type ExplainedDifference = Pick<Difference, 'model' | 'what' | 'ours' | 'theirs'> & {
  form: ListForm;
  reason: string;
};

/** Upstream models that a list does not have. */
export type ExplainedAbsence = { form: ListForm; provider: string; upstream_models: string[]; reason: string };

export type Explanations = { differences: readonly ExplainedDifference[]; absences: readonly ExplainedAbsence[] };

let read: Explanations | undefined;

/** Returns the explanations that come along. */
export function knownExplanations(): Explanations {
  read ??= parse(readFileSync(new URL('../default/list-differences.yaml', import.meta.url), 'utf8')) as Explanations;
  return read;
}

export type SortedComparison = {
  explained: (Difference & { reason: string })[];
  unexplained: Difference[];
  explained_absences: (UnlistedRoute & { reason: string })[];
  unexplained_absences: UnlistedRoute[];
  /** Explanations of this form of list that explain nothing any more. */
  stale: (ExplainedDifference | (Omit<ExplainedAbsence, 'upstream_models'> & { upstream_model: string }))[];
};

/** Sorts what a comparison found into what has a reason and what has none. */
export function sortExplained(
  { differences, unlisted }: Comparison,
  form: ListForm,
  explanations: Explanations = knownExplanations(),
): SortedComparison {
  const of_form = explanations.differences.filter((one) => one.form === form);
  const absences = explanations.absences
    .filter((one) => one.form === form)
    .flatMap(({ upstream_models, ...rest }) => upstream_models.map((upstream_model) => ({ ...rest, upstream_model })));
  const used = new Set<unknown>();
  const reasonOf = <One extends { reason: string }>(candidates: readonly One[], fits: (one: One) => boolean) => {
    const fitting = candidates.filter(fits);
    for (const one of fitting) used.add(one);
    return fitting[0]?.reason;
  };
  const sorted: SortedComparison = {
    explained: [],
    unexplained: [],
    explained_absences: [],
    unexplained_absences: [],
    stale: [],
  };
  for (const difference of differences) {
    const reason = reasonOf(of_form, (one) => explains(one, difference));
    if (reason === undefined) sorted.unexplained.push(difference);
    else sorted.explained.push({ ...difference, reason });
  }
  for (const absence of unlisted) {
    const { provider, upstream_model } = absence;
    const reason = reasonOf(absences, (one) => one.provider === provider && one.upstream_model === upstream_model);
    if (reason === undefined) sorted.unexplained_absences.push(absence);
    else sorted.explained_absences.push({ ...absence, reason });
  }
  sorted.stale = [...of_form, ...absences].filter((one) => !used.has(one));
  return sorted;
}

function explains(one: ExplainedDifference, { model, what, ours, theirs }: Difference): boolean {
  return one.model === model && one.what === what && one.ours === ours && one.theirs === theirs;
}
