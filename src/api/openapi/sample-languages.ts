/** A file in a request or of an answer, by the name that it has in the folder of the caller. */
type SampleFile = { file: string };

export type SampleBody =
  | { kind: 'json'; value: unknown }
  /** As a form of a page: application/x-www-form-urlencoded. */
  | { kind: 'fields'; fields: readonly (readonly [string, string])[] }
  | { kind: 'form'; fields: readonly (readonly [string, string | SampleFile])[] }
  | ({ kind: 'bytes' } & SampleFile);

/** One request of an operation, before it is written in a language. The key is the environment's variable `KEY`. */
export type SampleRequest = {
  method: string;
  url: string;
  has_key: boolean;
  headers: readonly (readonly [string, string])[];
  body: SampleBody | undefined;
  /** Form of the answer. */
  answer: 'json' | 'text' | 'nothing' | SampleFile;
};

/** A value that fits into one line of this many characters is written in one. */
const line_length_max = 72;

/** Writes the request as a command of a shell. */
export function renderCurl(request: SampleRequest): string {
  const { method, url, body, answer } = request;
  const usual = body === undefined ? 'GET' : 'POST';
  const words = [
    `curl -sS ${/[?&]/.test(url) ? `"${url}"` : url}`,
    ...(method === usual ? [] : [`-X ${method}`]),
    ...(request.has_key ? ['-H "Authorization: Bearer $KEY"'] : []),
    ...headersOf(request).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : curlBody(body)),
    ...(typeof answer === 'string' ? [] : [`-o ${answer.file}`]),
  ];
  return words.join(' \\\n  ');
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

function curlBody(body: SampleBody): string[] {
  switch (body.kind) {
    case 'json':
      return [`-d ${quoted(literal(body.value, json_syntax, 1))}`];
    case 'fields':
      return body.fields.map(([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`);
    case 'form':
      return body.fields.map(([name, value]) =>
        typeof value === 'string' ? `-F ${quoted(`${name}=${value}`)}` : `-F ${name}=@${value.file}`,
      );
    case 'bytes':
      return [`--data-binary @${body.file}`];
  }
}

/** Writes the request as a module of TypeScript for Node, without packages. */
export function renderTypeScript(request: SampleRequest): string {
  const { method, url, body, answer } = request;
  const has_files = body?.kind === 'form' || body?.kind === 'bytes';
  const imports = [
    ...(has_files ? ["import { openAsBlob } from 'node:fs';"] : []),
    ...(typeof answer === 'string' ? [] : ["import { writeFile } from 'node:fs/promises';"]),
  ];
  const headers = headersOf(request).map(([name, value]) => `${memberName(name)}: ${single(value)}`);
  const all = request.has_key ? ['Authorization: `Bearer ${process.env.KEY}`', ...headers] : headers;
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}',`]),
    ...(all.length === 0 ? [] : [`headers: { ${all.join(', ')} },`]),
    ...(body === undefined ? [] : [`body: ${typeScriptBody(body)},`]),
  ].map((line) => `  ${line}\n`);
  const form = body?.kind === 'form' ? [formOf(body)] : [];
  const call = `const response = await fetch(${single(url)}${options.length === 0 ? '' : `, {\n${options.join('')}}`});`;
  const parts = [...(imports.length > 0 ? [imports.join('\n')] : []), ...form, call];
  return `${parts.join('\n\n')}\n${typeScriptAnswer(answer)}`;
}

function typeScriptBody(body: SampleBody): string {
  if (body.kind === 'form') return 'form';
  if (body.kind === 'fields')
    return `new URLSearchParams(${literal(Object.fromEntries(body.fields), typescript_syntax, 1)})`;
  if (body.kind === 'bytes') return `await openAsBlob('${body.file}')`;
  return `JSON.stringify(${literal(body.value, typescript_syntax, 1)})`;
}

function formOf({ fields }: Extract<SampleBody, { kind: 'form' }>): string {
  const lines = fields.map(([name, value]) =>
    typeof value === 'string'
      ? `form.append('${name}', ${single(value)});`
      : `form.append('${name}', await openAsBlob('${value.file}'), '${value.file}');`,
  );
  return ['const form = new FormData();', ...lines].join('\n');
}

function typeScriptAnswer(answer: SampleRequest['answer']): string {
  if (answer === 'nothing') return 'console.log(response.status);';
  if (answer === 'text') return 'console.log(await response.text());';
  if (answer === 'json') return 'console.log(await response.json());';
  return `await writeFile('${answer.file}', Buffer.from(await response.arrayBuffer()));`;
}

/** Writes the request as a program of Python with the package requests. */
export function renderPython(request: SampleRequest): string {
  const { method, url, body, answer } = request;
  const headers = headersOf(request).map(([name, value]) => `${double(name)}: ${double(value)}`);
  const all = request.has_key ? [`"Authorization": f"Bearer {os.environ['KEY']}"`, ...headers] : headers;
  const words = [
    double(url),
    ...(all.length === 0 ? [] : [`headers={${all.join(', ')}}`]),
    ...(body === undefined ? [] : pythonBody(body)),
  ];
  const call = `requests.${method.toLowerCase()}`;
  const called =
    words.length === 1 ? `${call}(${words[0]})` : `${call}(\n${words.map((word) => `    ${word},\n`).join('')})`;
  return [
    ...(request.has_key ? ['import os', ''] : []),
    'import requests',
    '',
    `response = ${called}`,
    pythonAnswer(answer),
  ].join('\n');
}

function pythonBody(body: SampleBody): string[] {
  if (body.kind === 'json') return [`json=${literal(body.value, python_syntax, 1)}`];
  if (body.kind === 'fields') return [`data=${literal(Object.fromEntries(body.fields), python_syntax, 1)}`];
  if (body.kind === 'bytes') return [`data=open(${double(body.file)}, "rb")`];
  const texts = body.fields.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []));
  const files = body.fields.flatMap(([name, value]) =>
    typeof value === 'string' ? [] : [`${double(name)}: open(${double(value.file)}, "rb")`],
  );
  const data = texts.length === 0 ? [] : [`data=${literal(Object.fromEntries(texts), python_syntax, 1)}`];
  return files.length === 0 ? data : [...data, `files={${files.join(', ')}}`];
}

function pythonAnswer(answer: SampleRequest['answer']): string {
  if (answer === 'nothing') return 'print(response.status_code)';
  if (answer === 'text') return 'print(response.text)';
  if (answer === 'json') return 'print(response.json())';
  return `with open(${double(answer.file)}, "wb") as file:\n    file.write(response.content)`;
}

/** Headers besides the key. Forms have a boundary in theirs, which the program writes; Python's package writes that of JSON. */
function headersOf({ headers, body }: SampleRequest): readonly (readonly [string, string])[] {
  return body?.kind === 'json' ? [['Content-Type', 'application/json'], ...headers] : headers;
}

type Syntax = {
  indent: string;
  key(name: string): string;
  /** Of text, numbers, true, false and null. */
  scalar(value: unknown): string;
  /** Around the members of an object in one line. */
  padding: string;
};

const double = (text: string) => JSON.stringify(text);

/** Text in JSON is text in TypeScript, too, which has single quotes in its programs. */
function single(text: string): string {
  return `'${double(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

const memberName = (name: string) => (/^[a-z_]\w*$/i.test(name) ? name : single(name));

const json_syntax: Syntax = { indent: '  ', key: double, scalar: (value) => JSON.stringify(value), padding: ' ' };

const typescript_syntax: Syntax = {
  indent: '  ',
  key: memberName,
  scalar: (value) => (typeof value === 'string' ? single(value) : JSON.stringify(value)),
  padding: ' ',
};

const python_words = new Map<unknown, string>([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
]);

const python_syntax: Syntax = {
  indent: '    ',
  key: double,
  scalar: (value) => python_words.get(value) ?? JSON.stringify(value),
  padding: '',
};

/** A JSON value as a program writes it, `depth` levels deep: in one line where that is short. */
function literal(value: unknown, syntax: Syntax, depth: number): string {
  if (typeof value !== 'object' || value === null) return syntax.scalar(value);
  const is_list = Array.isArray(value);
  const members = (inner: number): string[] =>
    is_list
      ? value.map((item) => literal(item, syntax, inner))
      : Object.entries(value).map(([key, each]) => `${syntax.key(key)}: ${literal(each, syntax, inner)}`);
  const [open, close] = is_list ? ['[', ']'] : ['{', '}'];
  const padding = is_list || members(depth).length === 0 ? '' : syntax.padding;
  const line = `${open}${padding}${members(depth).join(', ')}${padding}${close}`;
  if (!line.includes('\n') && line.length <= line_length_max) return line;
  const trailing = syntax === json_syntax ? '' : ',';
  const inner = members(depth + 1).map((member) => syntax.indent.repeat(depth + 1) + member);
  return `${open}\n${inner.join(',\n')}${trailing}\n${syntax.indent.repeat(depth)}${close}`;
}
