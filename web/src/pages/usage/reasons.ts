import type { RefusalReason } from '../../../../src/dashboard/views/refusals.ts';

const reason_labels: { readonly [reason in RefusalReason]: string } = {
  insufficient_balance: 'The balance was too low',
  monthly_limit: 'The monthly limit of the key was reached',
  budget_reached: 'A budget was reached',
  model_not_allowed: 'The key may not use the model',
  scope_missing: 'The key may not be used for this',
  address_not_allowed: 'The key may not be used from this address',
  limited_to_projects: 'The key is limited to its project',
  account_blocked: 'The account was blocked',
  rate_limit: 'Too many requests per minute',
  concurrency_limit: 'Too many calls at once',
  failures_pause: 'Too many generations failed',
};

/** Says why calls were refused. */
export function reasonText(reason: RefusalReason): string {
  return reason_labels[reason];
}

type NextStep = { text: string; href?: string };

/** The next step for each reason; without a page for it, words alone. */
const next_steps: { readonly [reason in RefusalReason]: NextStep } = {
  insufficient_balance: { text: 'Top up', href: '/billing' },
  monthly_limit: { text: 'Raise the limit of the key', href: '/keys' },
  budget_reached: { text: 'Raise the budget', href: '/budgets' },
  model_not_allowed: { text: 'Allow the model on the key', href: '/keys' },
  scope_missing: { text: 'Allow this use on the key', href: '/keys' },
  address_not_allowed: { text: 'Allow the address on the key', href: '/keys' },
  limited_to_projects: { text: 'Use a key of somebody who sees all of the account', href: '/keys' },
  account_blocked: { text: 'Ask the operator of this service.' },
  rate_limit: { text: 'Look at the limit of the key', href: '/keys' },
  concurrency_limit: { text: 'Have fewer calls of one key in progress at once.' },
  failures_pause: { text: 'See what failed', href: '/activity?tab=tasks&status=failed' },
};

/** Steps of members of some projects, where the page for it is about all of the account: they ask somebody else. */
const limited_next_steps: { readonly [reason in RefusalReason]?: NextStep } = {
  insufficient_balance: { text: 'Ask an owner of the account to top up.' },
  budget_reached: { text: 'Ask an owner of the account to raise the budget.' },
  limited_to_projects: { text: 'Ask somebody who sees all of the account for a key.' },
};

/** Says what to do about a reason. */
export function nextStep(reason: RefusalReason, is_limited: boolean): NextStep {
  return (is_limited && limited_next_steps[reason]) || next_steps[reason];
}
