import { expect, it } from 'vitest';
import { readContentRules } from '../../src/accounts/content-rules.ts';
import { KeyRuleError } from '../../src/accounts/key-rule-error.ts';
import { personal_data } from '../../src/lib/personal-data.ts';

it('rules that say nothing have all kinds of data, and at most the days that the operator allows', () => {
  expect(readContentRules({}, 90)).toEqual({ keep_days: 30, redact: personal_data, patterns: [] });
  expect(readContentRules({}, 7)).toMatchObject({ keep_days: 7 });
  expect(readContentRules(null, 0)).toBeNull();
});

it.each<[unknown, number, string]>([
  [{}, 0, 'this service stores no content'],
  [true, 90, 'must be an object'],
  [[], 90, 'must be an object'],
  [{ keep_days: 91 }, 90, 'keep_days from 1 to 90'],
  [{ keep_days: 1.5 }, 90, 'keep_days from 1 to 90'],
  [{ redact: ['names'] }, 90, 'redact with some of email, phone, card, iban, secret'],
  [{ redact: 'email' }, 90, 'redact with some of'],
  [{ patterns: ['EMP-####', '(a+)+$\\'] }, 90, 'patterns[1] ends with a "\\"'],
  [{ patterns: ['ab'] }, 90, 'patterns[0] must have at least 3 characters'],
  [{ patterns: [7] }, 90, 'patterns[0] must be a text'],
  [{ patterns: ['x'.repeat(61)] }, 90, 'patterns[0] must have at most 60 characters'],
  [{ patterns: Array.from({ length: 21 }, () => 'abc') }, 90, 'at most 20'],
  [{ days: 3 }, 90, 'has no member "days"'],
])('%j with %i days is refused, and the message says where the mistake is', (value, days_max, message) => {
  expect(() => readContentRules(value, days_max)).toThrow(KeyRuleError);
  expect(() => readContentRules(value, days_max)).toThrow(message);
});
