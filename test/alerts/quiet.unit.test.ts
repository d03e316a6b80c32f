import { expect, it } from 'vitest';
import { testAlert, webhookBody } from '../../src/alerts/message.ts';
import { isQuiet } from '../../src/alerts/quiet.ts';
import { readCatalogFile } from '../../src/catalog/file.ts';
import { isTimeZone } from '../../src/lib/time-zone.ts';
import { readDocument, tableRows } from '../docs/document.ts';

const warsaw = { from: 22 * 60, to: 7 * 60, time_zone: 'Europe/Warsaw' };

it.each([
  ['2026-01-15T20:59:00Z', false], // 21:59, winter
  ['2026-01-15T21:00:00Z', true],
  ['2026-01-15T23:30:00Z', true], // 00:30 of the next day
  ['2026-01-16T05:59:00Z', true],
  ['2026-01-16T06:00:00Z', false],
  ['2026-07-15T19:59:00Z', false], // 21:59, summer
  ['2026-07-15T20:00:00Z', true],
])('the night of Warsaw at %s: %s', (at, expected) => {
  expect(isQuiet(warsaw, Date.parse(at))).toBe(expected);
});

it('quiet hours of one day end on it', () => {
  const noon = { from: 12 * 60, to: 13 * 60, time_zone: 'UTC' };
  const at = (time: string) => isQuiet(noon, Date.parse(`2026-01-01T${time}Z`));
  expect([at('11:59:00'), at('12:00:00'), at('12:59:59'), at('13:00:00')]).toEqual([false, true, true, false]);
});

it('a time zone is one that clocks have', () => {
  expect(['UTC', 'Asia/Kolkata', 'Europe/Warsaw'].every(isTimeZone)).toBe(true);
  expect(['', 'Mars/Olympus', 'Europe/Warsaw; drop'].some(isTimeZone)).toBe(false);
});

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

function problemsOf(alerts: string): string[] {
  const surroundings = {
    adapters: [],
    canServe: () => true,
    secret: (reference: string) => ({ 'env:GOOD': secret, 'env:BAD': 'hunter2' })[reference],
  };
  const reading = readCatalogFile(`version: 1\nalerts: ${alerts}\n`, 'medley.yaml', surroundings);
  const problems = reading.ok ? reading.warnings : reading.problems;
  return problems.map(({ path, message }) => `${path}: ${message}`);
}

const hook = 'webhook_url: "http://10.0.0.7/alerts"';

it.each([
  [`{ mail: [ops@example.com], ${hook}, webhook_secret: "env:GOOD" }`, []],
  [`{ quiet_hours: { from: "22:00", to: "07:00" }, per_hour_max: 5, disk_percent_min: 15 }`, []],
  [`{ ${hook} }`, [/^alerts\.webhook_url: needs webhook_secret/]],
  [`{ webhook_secret: "env:GOOD" }`, [/of no use without webhook_url/]],
  [`{ ${hook}, webhook_secret: "env:ABSENT" }`, [/env:ABSENT is not set: alerts are not sent/]],
  [`{ ${hook}, webhook_secret: "env:BAD" }`, [/^alerts\.webhook_secret: env:BAD must be whsec_/]],
  [`{ quiet_hours: { from: "22:00", to: "22:00" } }`, [/^alerts\.quiet_hours\.to: must be another time/]],
  [`{ quiet_hours: { from: "24:00", to: "7:00" } }`, [/from: must be a time of day/, /to: must be a time of day/]],
  [`{ quiet_hours: { from: "22:00", to: "07:00", time_zone: Mars } }`, [/time_zone: is not a time zone/]],
  [`{ mail: [nobody] }`, [/must be an address such as/]],
])('medley.yaml with alerts %s', (alerts, expected) => {
  const problems = problemsOf(alerts);
  expect(problems).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
  expect(problems.join(' ')).not.toContain('hunter2');
});

it('the page about alerts has every field of a webhook, and no other', () => {
  const body = webhookBody(testAlert('acct_1', 'alert_1', new Date()), 'test', 1, 'https://medley.example.com');
  const fields = tableRows(readDocument('docs/alerts.md'), 'Field').flatMap(([names = '']) => names.split(', '));
  expect(fields.toSorted()).toEqual(Object.keys(JSON.parse(body) as object).toSorted());
});
