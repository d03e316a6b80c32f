import type { Node } from 'oxc-parser';
import { inSource, judgeNodes, memberName, type Rule } from './tree.ts';

/** Files that may hold and close money: the flow of a call and its sweep, and app, which opens it. */
const holders = ['src/chat/hold.ts', 'src/chat/settle.ts', 'src/chat/unsettled.ts', 'src/chat/sweep.ts', 'src/app.ts'];

/** Methods of `app.holds` that move no money: anybody may call them. */
const readers = ['funds', 'readFunds', 'refusedBy', 'flush', 'invalidate', 'returnLeases', 'oldest_ms'];

/**
 * Looks at calls: of `holds` others may only call what reads, and they may neither keep it, nor hand it on, nor name its
 * type by way of App. The types of money/holds are for all, its functions are not.
 */
export const holds_callers: Rule = {
  name: 'money/holds',
  findings: (tree) =>
    judgeNodes(
      tree,
      (path) => inSource(path) && !path.startsWith('src/money/') && !holders.includes(path),
      (node, parents) => {
        if (importsValues(node)) return `only ${holders.join(', ')} may import what holds money; import types only`;
        if (!takesHolds(node, parents)) return undefined;
        return `only ${holders.join(', ')} may hold money; others call ${readers.join(', ')} of holds, and do not hand it on`;
      },
    ),
};

function takesHolds(node: Node, parents: readonly Node[]): boolean {
  switch (node.type) {
    case 'MemberExpression':
      return memberName(node) === 'holds' && !isCalledReader(node, parents);
    case 'Property':
      return parents.at(-1)?.type === 'ObjectPattern' && nameOf(node.key) === 'holds';
    case 'TSIndexedAccessType':
      return node.indexType.type === 'TSLiteralType' && nameOf(node.indexType.literal) === 'holds';
    default:
      return false;
  }
}

/** `holds.flush` in `app.holds.flush(…)`. */
function isCalledReader(node: Node, parents: readonly Node[]): boolean {
  const [member, call] = [parents.at(-1), parents.at(-2)];
  if (member?.type !== 'MemberExpression' || member.object !== node) return false;
  return call?.type === 'CallExpression' && call.callee === member && readers.includes(memberName(member) ?? '');
}

const is_holds = /\/money\/(?:holds|reservations)\.ts$/;

/** Types are no values; neither is the name of a channel. */
function importsValues(node: Node): boolean {
  switch (node.type) {
    case 'ImportDeclaration':
      if (!is_holds.test(node.source.value) || node.importKind === 'type') return false;
      return node.specifiers.some((each) => each.type !== 'ImportSpecifier' || each.importKind !== 'type');
    case 'ExportNamedDeclaration':
      return is_holds.test(node.source?.value ?? '') && node.exportKind !== 'type';
    case 'ExportAllDeclaration':
      return is_holds.test(node.source.value);
    case 'ImportExpression':
      return is_holds.test(nameOf(node.source) ?? '');
    default:
      return false;
  }
}

function nameOf(node: Node): string | undefined {
  if (node.type === 'Identifier') return node.name;
  return node.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;
}
