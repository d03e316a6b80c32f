import type { Finding, Rule, Tree } from './tree.ts';

/** Findings for the lines of the files that `where` lets through. `pattern` is not global: one finding a line. */
function judgeLines(tree: Tree, where: (path: string) => boolean, pattern: RegExp, advice: string): Finding[] {
  return [...tree.files]
    .filter(([path]) => where(path))
    .flatMap(([file, text]) =>
      text.split('\n').flatMap((line, index) => (pattern.test(line) ? [{ file, line: index + 1, advice }] : [])),
    );
}

/** A lock file's checksums are random letters; sooner or later they spell anything. */
const isWritten = (path: string): boolean => !path.endsWith('package-lock.json');

// The words stand in two halves, or this file would break its own rules.
const marks = new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'HA' + 'CK', 'XX' + 'X'].join('|')})\\b`);

export const no_marks: Rule = {
  name: 'leftover mark',
  findings: (tree) => judgeLines(tree, isWritten, marks, 'do it now, or open an issue and delete the mark'),
};

const home_folders = ['work', 'root', 'farm', 'home'];
const machine_path = new RegExp(`(?<![\\w.})-])/(?:${home_folders.join('|')})/`);

export const no_machine_paths: Rule = {
  name: 'machine path',
  findings: (tree) => judgeLines(tree, () => true, machine_path, 'write a path relative to the repository'),
};

const registry_hosts = [
  '\\bregistry\\.[a-z0-9-]+\\.(?:org|com|net|io|dev)\\b',
  'npm' + 'js\\.(?:org|com)',
  'npm' + 'mirror\\.com',
  'yarn' + 'pkg\\.com',
  'npm\\.' + 'pkg\\.github\\.com',
  'py' + 'pi\\.org',
  'python' + 'hosted\\.org',
  'crates' + '\\.io',
  'proxy\\.' + 'golang\\.org',
  'j' + 'frog\\.io',
  'arti' + 'factory\\.',
  'verd' + 'accio\\.',
];

export const no_registry_hosts: Rule = {
  name: 'registry host',
  findings: (tree) =>
    judgeLines(
      tree,
      () => true,
      new RegExp(registry_hosts.join('|'), 'i'),
      'leave the registry to npm: no host of one belongs in the repository',
    ),
};

export const one_title: Rule = {
  name: 'one title',
  findings: (tree) =>
    [...tree.files]
      .filter(([path]) => path.endsWith('.md'))
      .flatMap(([file, text]) => {
        const titles = titleLines(text);
        if (titles.length === 1) return [];
        return [
          { file, line: titles[1] ?? 1, advice: `${titles.length} lines start with "# "; a document has one title` },
        ];
      }),
};

/** Line numbers of `# …` outside of code blocks. */
function titleLines(text: string): number[] {
  let in_code = false;
  return text.split('\n').flatMap((line, index) => {
    if (/^\s*(?:```|~~~)/.test(line)) in_code = !in_code;
    return !in_code && line.startsWith('# ') ? [index + 1] : [];
  });
}
