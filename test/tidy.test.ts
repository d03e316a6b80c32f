import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { bad, good, type Example } from './tidy/examples.ts';
import { rules } from './tidy/rules.ts';
import { readTree, show, treeOf, type Rule } from './tidy/tree.ts';

function ruleNamed(name: string): Rule {
  const rule = rules.find((each) => each.name === name);
  if (!rule) throw new Error(`There is no rule "${name}".`);
  return rule;
}

function places(example: Example): string[] {
  const findings = ruleNamed(example.rule).findings(treeOf(example.files));
  return findings.map(({ file, line }) => `${file}:${line}`);
}

describe('house rules', () => {
  const tree = readTree(fileURLToPath(new URL('..', import.meta.url)));

  it('looks at the whole repository', () => {
    expect([...tree.files.keys()]).toEqual(
      expect.arrayContaining(['package.json', 'src/errors.ts', 'test/tidy.test.ts']),
    );
  });

  it.each(rules)('$name', (rule) => {
    expect(rule.findings(tree).map((finding) => show(rule, finding))).toEqual([]);
  });
});

describe('each rule can fail', () => {
  it('and says where and what to do', () => {
    const findings = ruleNamed('types').findings(treeOf({ 'src/x.ts': '\nlet a: any;' }));
    expect(findings.map((finding) => show(ruleNamed('types'), finding))).toEqual([
      'src/x.ts:2 types: say what it is, or unknown and a check at the edge, instead of any',
    ]);
  });

  it('and is shown to', () => {
    expect([...new Set(bad.map(({ rule }) => rule))]).toEqual(expect.arrayContaining(rules.map(({ name }) => name)));
  });

  it.each(bad)('$rule: $why', (example) => {
    expect(places(example)).toEqual([example.at]);
  });
});

describe('no rule cries wolf', () => {
  it.each(good)('$rule: $why', (example) => {
    expect(places(example)).toEqual([]);
  });
});
