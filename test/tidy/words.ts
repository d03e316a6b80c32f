import type { Node } from 'oxc-parser';
import { judgeNodes, type Rule } from './tree.ts';

/** Participles say nothing about a value: the noun does. */
const participles = ['told', 'said', 'known', 'found', 'given', 'wanted', 'made', 'kept', 'asked'];

/** Words that were coined here, each with the one that engineers of this field use. */
const coined: readonly (readonly [word: RegExp, use: string])[] = [
  [/_(?:told|untold|said)(?=_)/, 'the thing itself: response, usage, message, reason'],
  [/_(?:pledge[sd]?|pledges)(?=_)/, 'reservation'],
  [/_hasten(?:ed)?(?=_)/, 'promote'],
  [/_put_back(?=_)/, 'defer'],
  [/_give_back(?=_)/, 'release'],
  [/_parked(?=_)/, 'throttled'],
  [/_lanes?(?=_)/, 'endpoint, or queue'],
  [/_outlets?(?=_)/, 'stream writer'],
  [/_pour(?:ed)?(?=_)/, 'write to'],
  [/_trials?(?=_)/, 'route attempt, or test call'],
  [/_films?(?=_)/, 'video'],
  [/_pictures?(?=_)/, 'image'],
  [/_sounds?(?=_)/, 'audio'],
  [/(?<!_pg)_boss(?=_)/, 'job queue'],
  [/_dut(?:y|ies)(?=_)/, 'scheduled job'],
  [/_blameless(?=_)/, "not the route's fault"],
  [/_seals?(?=_)/, 'thought signature'],
  [/_complaints?(?=_)/, 'validation message'],
  [/_grounds(?=_)/, 'preconditions'],
  [/_(?:sole_node)(?=_)/, 'API lease'],
  [/_wish(?=_)/, 'request'],
  [/_while_away(?=_)/, 'retry while unavailable'],
  [/_by_hand(?=_)/, 'manual'],
  [/_is_calm(?=_)/, 'no open circuit'],
  [/_body_rooms?(?=_)/, 'body memory'],
  [/_deeds?(?=_)/, 'audit entry, or action'],
  [/_dearest(?=_)/, 'highest, or most expensive'],
];

/** Types that were named after a picture of the mechanism. */
const coined_types = ['Turns', 'Watch', 'Gate', 'Try', 'Tries', 'Order', 'Ask', 'Beside', 'Places', 'Share', 'Story'];

/** Fields of files on disk, which other versions read and write under the same name. */
const stored_fields: Readonly<Record<string, string>> = { 'src/chat/unsettled.ts': 'pledge' };

/** Looks at what a file names itself: a field of somebody else's object may be called anything. */
export const plain_words: Rule = {
  name: 'coined word',
  findings: (tree) =>
    judgeNodes(
      tree,
      (path) => /^(?:src|web\/src|bench|scripts|clients|test)\//.test(path),
      (node, _parents, { path }) =>
        declaredNames(node)
          .filter((name) => name !== stored_fields[path])
          .map(adviceFor)
          .find((advice) => advice !== undefined),
    ),
};

function adviceFor(name: string): string | undefined {
  const is_participle = participles.includes(name.toLowerCase());
  if (is_participle) return `"${name}" says nothing: name the value after what it is, the function after what it does`;
  if (coined_types.includes(name)) return `"${name}" is a word of our own: use the standard term of the field`;
  const words = `_${name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()}_`;
  const use = coined.find(([word]) => word.test(words))?.[1];
  return use && `"${name}" is a word of our own: use ${use}`;
}

function declaredNames(node: Node): string[] {
  switch (node.type) {
    case 'VariableDeclarator':
      return namesIn(node.id);
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'TSDeclareFunction':
      return [...(node.id ? [node.id.name] : []), ...node.params.flatMap(namesIn)];
    case 'ArrowFunctionExpression':
    case 'TSFunctionType':
      return node.params.flatMap(namesIn);
    case 'TSMethodSignature':
      return [...namesIn(node.key), ...node.params.flatMap(namesIn)];
    case 'ClassDeclaration':
      return node.id ? [node.id.name] : [];
    case 'TSTypeAliasDeclaration':
    case 'TSInterfaceDeclaration':
      return [node.id.name];
    case 'TSPropertySignature':
    case 'PropertyDefinition':
    case 'MethodDefinition':
      return namesIn(node.key);
    default:
      return [];
  }
}

/** Names in a pattern, without those that are fields of the object that it takes apart. */
function namesIn(pattern: Node): string[] {
  switch (pattern.type) {
    case 'Identifier':
    case 'PrivateIdentifier':
      return [pattern.name];
    case 'ObjectPattern':
      return pattern.properties.flatMap((each) => {
        if (each.type === 'RestElement') return namesIn(each.argument);
        return each.shorthand ? [] : namesIn(each.value);
      });
    case 'ArrayPattern':
      return pattern.elements.flatMap((each) => (each ? namesIn(each) : []));
    case 'AssignmentPattern':
      return namesIn(pattern.left);
    case 'RestElement':
      return namesIn(pattern.argument);
    default:
      return [];
  }
}
