import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { assert } from '../../src/lib/assert.ts';
import { isRecord } from '../../src/lib/is-record.ts';

/** Something that the committed files ask Prometheus for. */
export type Expression = { where: string; expression: string };

/** Returns what the alerts and the panels of the dashboard ask for. */
export function expressionsIn(root: string): Expression[] {
  const rules: unknown = parse(readFileSync(join(root, 'deploy/prometheus/medley.rules.yml'), 'utf8'));
  const dashboard: unknown = JSON.parse(readFileSync(join(root, 'deploy/grafana/medley.json'), 'utf8'));
  return [
    ...within(rules, 'groups').flatMap((group) => within(group, 'rules').map((rule) => expression(rule, 'alert'))),
    ...within(dashboard, 'panels').flatMap((panel) =>
      within(panel, 'targets').map((target) => ({
        ...expression(target, 'refId'),
        where: String(isRecord(panel) && panel['title']),
      })),
    ),
  ];
}

function within(value: unknown, member: string): unknown[] {
  const list = isRecord(value) ? value[member] : undefined;
  return Array.isArray(list) ? list : [];
}

function expression(value: unknown, name: string): Expression {
  assert(isRecord(value), 'an expression is in an object');
  return { where: String(value[name]), expression: String(value['expr']) };
}
