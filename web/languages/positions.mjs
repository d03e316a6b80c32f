// Decides which strings of the dashboard people read. A position is `text`, `code`, or `plain`, where the look of the string decides.

/** Members, attributes and variables whose strings people read, whatever they look like. */
const text_names =
  /^(title|label|labels|description|placeholder|alt|about|caption|note|notes|text|texts|message|hint|error|help|heading|legend|summary|words|phrase|nothing|done|may|aria-(label|description|valuetext|roledescription))$|_(labels?|words|texts|titles|notes|phrases)$/;

/** Those whose strings nobody reads. */
const code_names =
  /^(className|classNames|style|styles|vars|variant|color|c|bg|href|to|key|id|type|size|component|role|htmlFor|autoComplete|d|viewBox|data-.*|aria-(hidden|current|live|describedby|labelledby|controls|haspopup)|accept|rel|target|method|lang|pattern|queryKey|mutationKey|path|scope|permission|headers|gradient|transition|fill|stroke|fontFamily|fontFamilyMonospace|ff|cols|files|curve|dataKey|margin|position|gridAxis|tickLine)$/;

const code_calls =
  /^(get|has|getItem|setItem|removeItem|getAttribute|setAttribute|querySelector|querySelectorAll|getElementById|closest|matches|addEventListener|removeEventListener|startsWith|endsWith|includes|indexOf|split|RegExp|useMediaQuery|matchMedia|createElement|fetch|useHotkeys|lazy|lazyRouteComponent|createRoute|canPlayType|append|padEnd|padStart|delete|del|put|patch|post|Blob|File|DOMException)$/;

const text_functions =
  /(Texts?|Name|Label|Note|Words|Title|Phrase|Sentence|Summary|Reason)$|^(text|summary|rules|name|note|reason|label)Of$/;

const locale_calls =
  /^(toLocaleString|toLocaleDateString|localeCompare|NumberFormat|DateTimeFormat|RelativeTimeFormat|ListFormat)$/;

const code_elements = /^(Code|code|pre|kbd|Kbd|script|style|CodeBlock|CodeHighlight)$/;

/** Files with code that people copy, and with names that are the same in every language. */
const code_files =
  /^(ui\/languages|ui\/samples|ui\/markdown\/highlight|pages\/keys\/snippets|pages\/webhooks\/verify)\.ts$|^guide\//;

/** Returns whether a file of web/src has messages. */
export function hasMessages(file) {
  return /\.tsx?$/.test(file) && !file.endsWith('.d.ts') && !code_files.test(file);
}

/** Returns whether there is a word. */
export function hasWords(text) {
  return /\p{L}/u.test(text);
}

/** Returns whether people read a string at this position. */
export function isMessage(value, position) {
  if (position === 'code' || position === 'locale') return false;
  const text = value.trim();
  if (text.includes('\n') || /^curl |^[a-z]+(\.[a-z]+)+$/.test(text) || !/\p{Ll}/u.test(text)) return false;
  if (!/\p{L}{2}|^\p{L}$/u.test(text) || /^(https?:|\.?\/|data:|mailto:|#|--|&)/.test(text)) return false;
  if (/^(var|calc|rgba?|minmax|repeat|url)\(/.test(text) || /^\S*[a-z0-9]_[a-z]\S*$/.test(text)) return false;
  if (['text', 'attribute', 'key'].includes(position)) return !/^[a-z]+([A-Z][a-z]+)+$/.test(text);
  if (/^(an?|the|its|no|not) \p{L}+$|^[,;:·–] ?\p{L}|^\. \p{L}/u.test(text)) return true;
  if (/^[A-Z]-?[a-z]+(?=$|[\s,.:;!?…’'(){}-])/.test(text) && !/[=<>;]\s|\n/.test(text)) return true;
  if (text !== value && /^[\p{L}\s,.;:!?–·()'-]+$/u.test(value)) return true;
  if (/[=;]\s*\n|\n.*\n|=>|\)\s*\{|^[\d.]+(px|rem|%)|\b\d+px\b/.test(text)) return false;
  return /\p{L}{2,}[,:.]?\s+(\{\}|['"(–]?\p{L})|(\{\}|\d)[,:]?\s+\p{L}{2,}/u.test(text);
}

/** Returns the text of JSX as React shows it. */
export function cleanJsxText(text) {
  const lines = decoded(text).split(/\r\n|\n|\r/);
  const last = lines.findLastIndex((line) => /[^ \t]/.test(line));
  return lines
    .map((line, index) => {
      let clean = line.replaceAll('\t', ' ');
      if (index !== 0) clean = clean.replace(/^ +/, '');
      if (index !== lines.length - 1) clean = clean.replace(/ +$/, '');
      return clean !== '' && index < last ? `${clean} ` : clean;
    })
    .join('');
}

const entities = { nbsp: '\u00a0', amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decoded(text) {
  return text.replaceAll(/&(\w+);/g, (whole, name) => entities[name] ?? whole);
}

/** Returns whether the text of an element of JSX is code. */
export function isCode(element) {
  return code_elements.test(element.openingElement?.name?.name ?? '');
}

/** Returns the position of a node in another; undefined for types and names, which are not visited. */
export function positionOf(node, key, child, position) {
  if (isType(child, key)) return undefined;
  if (passing.has(node.type)) return position;
  return (positions[node.type] ?? plain)(node, key, child, position);
}

const plain = () => 'plain';
const unvisited = () => undefined;

/** What is in them is where they are. */
const passing = new Set([
  'ArrayExpression',
  'ChainExpression',
  'JSXExpressionContainer',
  'LogicalExpression',
  'ParenthesizedExpression',
  'ReturnStatement',
  'TemplateLiteral',
  'TSAsExpression',
  'TSNonNullExpression',
  'TSSatisfiesExpression',
]);

/** The texts that a function returns are read where the function is, or where its name says so. */
function inFunction(node, key, _child, position) {
  if (key !== 'body') return 'plain';
  return position === 'text' || text_functions.test(node.id?.name ?? '') ? 'text' : 'plain';
}

function inStatement(_node, key, _child, position) {
  return ['test', 'discriminant', 'right'].includes(key) ? 'plain' : position;
}

function inElement(node, key) {
  if (key === 'children') return isCode(node) ? 'code' : 'text';
  return key.startsWith('closing') ? undefined : 'plain';
}

const comparisons = new Set(['===', '!==', '==', '!=', 'in', '<', '>']);

const positions = {
  ImportDeclaration: unvisited,
  ImportExpression: unvisited,
  ExportAllDeclaration: unvisited,
  ExportNamedDeclaration: (_node, key) => (key === 'source' ? undefined : 'plain'),
  BinaryExpression: (node, _key, _child, position) => (comparisons.has(node.operator) ? 'code' : position),
  MemberExpression: (_node, key) => (key === 'property' ? 'code' : 'plain'),
  ConditionalExpression: (_node, key, _child, position) => (key === 'test' ? 'plain' : position),
  SwitchCase: (_node, key, _child, position) => (key === 'test' ? 'code' : position),
  CallExpression: inCall,
  NewExpression: inCall,
  Property: (node, key, _child, position) => (key === 'key' ? ofKey(node, position) : ofMember(node, position)),
  ObjectPattern: () => 'pattern',
  ObjectExpression: (_node, _key, _child, position) =>
    position === 'code' || position === 'text' ? position : 'plain',
  VariableDeclarator: (node, key) => (key === 'id' ? 'code' : ofVariable(nameOf(node.id))),
  AssignmentPattern: (node, key) => (key === 'right' ? ofName(nameOf(node.left), 'plain') : 'plain'),
  JSXAttribute: (node, key, child) => (key === 'name' ? undefined : ofAttribute(node, child)),
  JSXElement: inElement,
  JSXFragment: inElement,
  JSXOpeningElement: (_node, key) => (key === 'name' ? undefined : 'plain'),
  FunctionDeclaration: inFunction,
  FunctionExpression: inFunction,
  ArrowFunctionExpression: inFunction,
  BlockStatement: inStatement,
  IfStatement: inStatement,
  SwitchStatement: inStatement,
  ForOfStatement: inStatement,
};

/** An object in one whose texts are read has members of every kind. */
function ofMember(node, position) {
  const name = nameOf(node.key);
  if (node.value.type === 'ObjectExpression')
    return ofName(name, 'plain') === 'code' || position === 'code' ? 'code' : 'plain';
  return ofName(name, position);
}

/** Members have small names: one that begins with a capital, and has a function, is the name of a column. */
function ofKey(node, position) {
  if (node.computed) return 'code';
  const is_title =
    position !== 'pattern' &&
    !node.shorthand &&
    node.value.type === 'ArrowFunctionExpression' &&
    /^[A-Z][a-z]+(?![A-Za-z])/.test(nameOf(node.key));
  return is_title ? 'key' : undefined;
}

function isType(child, key) {
  if (key === 'typeAnnotation' || key === 'typeParameters' || key === 'typeArguments' || key === 'returnType')
    return true;
  return child.type.startsWith('TS') && !/^TS(As|Satisfies|NonNull)Expression$/.test(child.type);
}

function nameOf(node) {
  if (node.type === 'Identifier' || node.type === 'JSXIdentifier') return node.name;
  return node.type === 'Literal' ? String(node.value) : '';
}

function ofName(name, position) {
  if (position === 'code' || code_names.test(name)) return 'code';
  if (position === 'pattern') return 'plain';
  return text_names.test(name) || position === 'text' ? 'text' : 'plain';
}

function ofVariable(name) {
  if (text_names.test(name) || text_functions.test(name)) return 'text';
  return 'plain';
}

function ofAttribute(node, child) {
  const { name } = node;
  const full = name.type === 'JSXNamespacedName' ? `${name.namespace.name}:${name.name.name}` : name.name;
  if (code_names.test(full)) return 'code';
  if (child.type !== 'Literal') return text_names.test(full) ? 'text' : 'plain';
  return text_names.test(full) || isMessage(child.value, 'plain') ? 'attribute' : 'code';
}

function inCall(node, key) {
  const callee = node.callee;
  const name = callee.type === 'MemberExpression' ? nameOf(callee.property) : nameOf(callee);
  if (key !== 'arguments') return 'plain';
  if (locale_calls.test(name)) return 'locale';
  return code_calls.test(name) ? 'code' : 'plain';
}
