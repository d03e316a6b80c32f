import type { Node } from 'oxc-parser';
import { inSource, judgeNodes, lineAt, memberName, rootName, type Rule, type Tree } from './tree.ts';

const function_lines_max = 70;
const file_lines_max = 500;

export const parses: Rule = {
  name: 'syntax',
  findings: (tree) =>
    tree.sources.flatMap(({ path, mistakes }) => mistakes.map((mistake) => ({ file: path, line: 1, advice: mistake }))),
};

export const short_functions: Rule = {
  name: 'function length',
  findings: (tree) =>
    judgeNodes(
      tree,
      () => true,
      (node, parents, source) => {
        if (!isFunction(node) || isSuite(parents.at(-1))) return undefined;
        const lines = source.text.slice(node.start, node.end).split('\n').length;
        if (lines <= function_lines_max) return undefined;
        return `${lines} lines, at most ${function_lines_max}; keep the decisions here and move the steps into functions below`;
      },
    ),
};

function isFunction(node: Node): boolean {
  return ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'].includes(node.type);
}

/** The callback of describe() is a table of contents, not a function that somebody follows. */
function isSuite(parent: Node | undefined): boolean {
  return parent?.type === 'CallExpression' && rootName(parent.callee) === 'describe';
}

export const short_files: Rule = {
  name: 'file length',
  findings: (tree) =>
    [...tree.files]
      .filter(([path]) => inSource(path))
      .map(([file, text]) => ({ file, lines: text.split('\n').length - 1 }))
      .filter(({ lines }) => lines > file_lines_max)
      .map(({ file, lines }) => ({
        file,
        line: file_lines_max + 1,
        advice: `${lines} lines, at most ${file_lines_max}; split it by what it does`,
      })),
};

export const honest_types: Rule = {
  name: 'types',
  findings: (tree) => [
    ...judgeNodes(tree, isTypeScript, (node) => {
      if (node.type === 'TSAnyKeyword') return 'say what it is, or unknown and a check at the edge, instead of any';
      return isDoubleCast(node) ? 'check the value at runtime instead of casting it twice' : undefined;
    }),
    ...silencingComments(tree),
  ],
};

const isTypeScript = (path: string): boolean => /\.tsx?$/.test(path);

/** `x as unknown as T` and `x as never`: the two casts that the compiler never objects to. */
function isDoubleCast(node: Node): boolean {
  if (node.type !== 'TSAsExpression') return false;
  if (node.typeAnnotation.type === 'TSNeverKeyword') return true;
  return node.expression.type === 'TSAsExpression' && node.expression.typeAnnotation.type === 'TSUnknownKeyword';
}

function silencingComments(tree: Tree) {
  return tree.sources.flatMap((source) =>
    source.comments
      .filter((comment) => /@ts-(?:ignore|expect-error|nocheck)/.test(comment.value))
      .map((comment) => ({
        file: source.path,
        line: lineAt(source.text, comment.start),
        advice: 'mend the type instead of silencing the compiler',
      })),
  );
}

export const whole_money: Rule = {
  name: 'money',
  findings: (tree) =>
    judgeNodes(
      tree,
      (path) => path.startsWith('src/money/'),
      (node) => (isFloating(node) ? 'no floating point here: bigint millionths, decimal strings, Rational' : undefined),
    ),
};

/** Whatever makes or handles a number that may have a fraction. */
function isFloating(node: Node): boolean {
  switch (node.type) {
    case 'CallExpression':
      if (node.callee.type === 'Identifier') return ['Number', 'parseFloat', 'parseInt'].includes(node.callee.name);
      return ['parseFloat', 'parseInt', 'toFixed', 'toPrecision'].includes(memberName(node.callee) ?? '');
    case 'MemberExpression':
      return node.object.type === 'Identifier' && node.object.name === 'Math';
    case 'UnaryExpression':
      return node.operator === '+';
    case 'Literal':
      return typeof node.value === 'number' && (!Number.isInteger(node.value) || (node.raw ?? '').includes('.'));
    default:
      return false;
  }
}

/** A library in C reads its own from the environment alone. */
const environment_files = new Set(['src/config.ts', 'src/lib/image-threads.ts']);

export const environment: Rule = {
  name: 'environment',
  findings: (tree) =>
    judgeNodes(
      tree,
      (path) => inSource(path) && !environment_files.has(path),
      (node) =>
        readsEnvironment(node) ? 'read the environment in src/config.ts and take the value as a parameter' : undefined,
    ),
};

function readsEnvironment(node: Node): boolean {
  if (node.type === 'MemberExpression') {
    return memberName(node) === 'env' && (rootName(node.object) === 'process' || memberName(node.object) === 'process');
  }
  if (node.type === 'ImportDeclaration' && /^(?:node:)?process$/.test(node.source.value)) {
    return node.specifiers.some((each) => each.type === 'ImportSpecifier' && nameOf(each.imported) === 'env');
  }
  if (node.type !== 'VariableDeclarator' || node.id.type !== 'ObjectPattern' || node.init?.type !== 'Identifier')
    return false;
  return (
    node.init.name === 'process' &&
    node.id.properties.some((each) => each.type === 'Property' && nameOf(each.key) === 'env')
  );
}

function nameOf(node: Node): string | undefined {
  return node.type === 'Identifier' ? node.name : undefined;
}

export const provider_names: Rule = {
  name: 'provider name',
  findings: (tree) => {
    const names = adapterNames(tree);
    return judgeNodes(
      tree,
      (path) => inSource(path) && !/^src\/(?:providers|catalog)\//.test(path),
      (node, _parents, { path }) => {
        const text = textOf(node)?.toLowerCase();
        if (text === undefined || !names.has(text) || path.startsWith(`src/styles/${text}/`)) return undefined;
        return `only src/providers and src/catalog know "${text}"; ask the adapter for what differs, or hand the name in`;
      },
    );
  },
};

export const style_names: Rule = {
  name: 'style name',
  findings: (tree) => {
    const names = new Set([...tree.files.keys()].flatMap((path) => styleOf(path) ?? []));
    return judgeNodes(
      tree,
      (path) => inSource(path) && !knows_styles.test(path),
      (node, parents, { path }) => {
        const compared = comparedTexts(node, parents, names).filter(
          (text) => names.has(text) && text !== folderOf(path),
        );
        if (compared.length === 0) return undefined;
        return `only src/styles/${compared[0]}/ knows "${compared[0]}"; add what differs to Codec (src/styles/codec.ts) and ask it`;
      },
    );
  },
};

/** The lists of styles, of settings, of models and of endpoints. */
const knows_styles = /^src\/(?:styles\/index\.ts|config\.ts|server\.ts|catalog\/)/;

/** Each style is a folder with a codec. */
function styleOf(path: string): string | undefined {
  return /^src\/styles\/([^/]+)\/codec\.ts$/.exec(path)?.[1];
}

function folderOf(path: string): string | undefined {
  return /^src\/styles\/([^/]+)\//.exec(path)?.[1];
}

/** Texts that decide: operands of a comparison, cases, members of a list that is searched, keys of a table. */
function comparedTexts(node: Node, parents: readonly Node[], names: ReadonlySet<string>): string[] {
  switch (node.type) {
    case 'BinaryExpression':
      if (!['===', '!==', '==', '!='].includes(node.operator)) return [];
      return [textOf(node.left), textOf(node.right)].filter((text) => text !== undefined);
    case 'SwitchCase':
      return node.test ? [textOf(node.test)].filter((text) => text !== undefined) : [];
    case 'ArrayExpression': {
      const parent = parents.at(-1);
      const is_searched =
        parent && ((parent.type === 'NewExpression' && rootName(parent.callee) === 'Set') || isSearch(parent));
      if (!is_searched) return [];
      return node.elements.flatMap((each) => (each && textOf(each)) ?? []);
    }
    case 'ObjectExpression': {
      // Two styles side by side are a table; one may be a member of that name, such as the messages of a body.
      const keys = node.properties.flatMap((each) => (each.type === 'Property' && keyOf(each.key)) || []);
      const styles = keys.filter((key) => names.has(key));
      return styles.length > 1 ? styles : [];
    }
    default:
      return [];
  }
}

function isSearch(node: Node): boolean {
  return node.type === 'MemberExpression' && ['includes', 'indexOf', 'some', 'find'].includes(memberName(node) ?? '');
}

function keyOf(node: Node): string | undefined {
  return node.type === 'Identifier' ? node.name : textOf(node);
}

/** Each adapter is a folder in src/providers/adapters; the sandbox has a folder beside them. */
function adapterNames(tree: Tree): Set<string> {
  const folder = /^src\/providers\/(?:adapters\/([^/]+)|(sandbox))\//;
  return new Set(
    [...tree.files.keys()].flatMap((path) => {
      const [, adapter, sandbox] = folder.exec(path) ?? [];
      return adapter ?? sandbox ?? [];
    }),
  );
}

function textOf(node: Node): string | undefined {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node.type === 'TemplateLiteral' && node.expressions.length === 0) return node.quasis[0]?.value.raw;
  return undefined;
}

export const pgboss_in_one_file: Rule = {
  name: 'pgboss tables',
  findings: (tree) =>
    judgeNodes(
      tree,
      (path) => inSource(path) && path !== 'src/queue/pgboss-tables.ts',
      (node) => {
        const is_text = node.type === 'TemplateElement' || (node.type === 'Literal' && typeof node.value === 'string');
        const text = node.type === 'TemplateElement' ? node.value.raw : is_text ? String(node.value) : '';
        return /\bpgboss\./.test(text) ? "pg-boss's tables are named in src/queue/pgboss-tables.ts only" : undefined;
      },
    ),
};

const test_words = ['it', 'test', 'describe', 'suite', 'bench'];
const sleeping_words = ['skip', 'only', 'todo'];

const documented = /^(?:src|web\/src|scripts|bench|test)\//;

/** The words of a question, behind which a docstring says in two steps what a verb or a noun says in one. */
const question = /^\*[\s*]*(What|How|Where|Who|Whom|Whose|Why|When|Whether)\b/;

/** Words that begin half a sentence about a function: neither its verb nor its noun. */
const half =
  /^\*[\s*]*(After|Also|As|At|Before|Between|Both|By|False|For|From|In|Its?|Nobody|Not|Null|Of|On|Only|Somebody|That|There|These|They|Those|To|True|Undefined|Until|While|Whoever|With|Without)\b/;

const public_function = /^\s*export (?:default )?(?:async )?function\b/;

export const plain_docstrings: Rule = {
  name: 'docstring',
  findings: (tree) =>
    tree.sources
      .filter(({ path }) => documented.test(path))
      .flatMap(({ path, text, comments }) =>
        comments.flatMap(({ type, value, start, end }) => {
          if (type !== 'Block') return [];
          const is_public = /^(?:src|web\/src)\//.test(path) && public_function.test(text.slice(end, end + 100));
          const word = (question.exec(value) ?? (is_public ? half.exec(value) : null))?.[1];
          if (word === undefined) return [];
          const advice = `begin with a verb ("Returns …") or a noun instead of "${word}"`;
          return [{ file: path, line: lineAt(text, start), advice }];
        }),
      ),
};

export const awake_tests: Rule = {
  name: 'sleeping test',
  findings: (tree) =>
    judgeNodes(
      tree,
      (path) => /\.test\.tsx?$/.test(path),
      (node) => (isSleeping(node) ? 'every test runs, always: mend it or delete it' : undefined),
    ),
};

function isSleeping(node: Node): boolean {
  if (node.type === 'MemberExpression') {
    return sleeping_words.includes(memberName(node) ?? '') && test_words.includes(rootName(node.object) ?? '');
  }
  if (node.type !== 'CallExpression') return false;
  if (['xit', 'xtest', 'xdescribe', 'fit', 'fdescribe'].includes(rootName(node.callee) ?? '')) return true;
  return test_words.includes(rootName(node.callee) ?? '') && node.arguments.some(hasSleepingOption);
}

/** `it('…', { skip: true }, …)` does the same. */
function hasSleepingOption(node: Node): boolean {
  return (
    node.type === 'ObjectExpression' &&
    node.properties.some((each) => each.type === 'Property' && sleeping_words.includes(nameOf(each.key) ?? ''))
  );
}

const sleep_ms_max = 100;

export const short_sleeps: Rule = {
  name: 'fixed sleep',
  findings: (tree) =>
    judgeNodes(
      tree,
      (path) => /\.test\.tsx?$/.test(path),
      (node, parents) =>
        isLongSleep(node, parents)
          ? `wait for what must happen, or for at most ${sleep_ms_max} ms; if the time itself is what it is about, name it`
          : undefined,
    ),
};

/** `sleep(200)` with a number in its place, or the promise that `setTimeout(resolve, 200)` resolves. */
function isLongSleep(node: Node, parents: readonly Node[]): boolean {
  if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier') return false;
  const [first, second] = node.arguments;
  if (node.callee.name !== 'setTimeout') return sleep_words.includes(node.callee.name) && isLong(first);
  if (first?.type !== 'Identifier') return isLong(first);
  const executor = parents.findLast(isFunction);
  const holder = executor && parents[parents.indexOf(executor) - 1];
  return holder?.type === 'NewExpression' && rootName(holder.callee) === 'Promise' && isLong(second);
}

const sleep_words = ['sleep', 'pause', 'tick', 'delay'];

function isLong(node: Node | undefined): boolean {
  return node?.type === 'Literal' && typeof node.value === 'number' && node.value > sleep_ms_max;
}
