// Pages of the API reference, made of openapi.json: one for each tag, and one that lists them. Plain JavaScript, which Vite reads.
import { headingId } from './heading-id.mjs';
import { escapeText, nameOf, SchemaWriter } from './schema.mjs';

export const reference_section = 'API reference';

/** Guides that tell more about the operations of a tag, if there are any; each of them links back. */
const guides = {
  Tasks: ['media'],
  Models: ['models-and-prices'],
  Chat: ['chat', 'content-logging'],
  Embeddings: ['embeddings'],
  Rerank: ['rerank'],
  Moderation: ['moderation'],
  'Media for SDKs': ['media-calls'],
  Money: ['prices', 'budgets'],
  Calls: ['chat', 'dashboard'],
  Feedback: ['feedback'],
  Files: ['files'],
  Batches: ['batches'],
  Webhooks: ['webhooks'],
  Service: ['agents', 'monitoring'],
  'Sign in of programs': ['cli'],
};

/** The names of languages as code blocks have them. */
const fences = { Shell: 'sh', TypeScript: 'ts', Python: 'python' };

const overview = 'reference';

/** Bodies of errors, which the page about all operations describes. */
const error_names = ['Error', 'CompletionsError', 'MessagesError', 'GeminiError'];

const fileOf = (tag) => `${overview}-${tag.toLowerCase().replaceAll(' ', '-')}.md`;

/**
 * Returns the pages, as `readGuide` has them. `try_address` is where requests can be tried; `titleOf` returns the title
 * of a guide.
 */
export function referencePages(document, try_address, titleOf) {
  const operations = operationsOf(document);
  const owners = ownersOf(document, operations);
  const context = { document, operations, owners, try_address, titleOf };
  const tags = document.tags.map((tag) => pageOf(tag, context));
  return [overviewPage(context), ...tags];
}

/** Returns the sentence with which a guide leads to the operations that it is about; '' if there are none. */
export function seeReference(document, name) {
  const tags = document.tags.filter((tag) => guides[tag.name]?.includes(name));
  const links = tags.map((tag) => `[API reference: ${tag.name}](${fileOf(tag.name)})`);
  return links.length === 0 ? '' : `\nEvery operation with its fields: ${links.join(', ')}.\n`;
}

/** Every operation, in the order of the document. */
function operationsOf({ paths }) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      tag: operation.tags[0],
      request: `${method.toUpperCase()} ${path}`,
    })),
  );
}

/** Returns for each named schema that has a place of its own the file where it stands: that of its first operation. */
function ownersOf({ components, tags, webhooks }, operations) {
  const owners = new Map(error_names.map((name) => [name, `${overview}.md`]));
  const visit = (value, file) => {
    for (const name of referencesIn(value)) {
      if (owners.has(name) || components.schemas[name].properties === undefined) continue;
      owners.set(name, file);
      visit(components.schemas[name], file);
    }
  };
  for (const { name } of tags) {
    const inside = operations.filter(({ tag }) => tag === name);
    for (const { responses, requestBody } of inside) {
      visit(responses, fileOf(name));
      for (const schema of bodySchemas(requestBody, components)) visit(schema, fileOf(name));
    }
  }
  for (const { post } of Object.values(webhooks))
    for (const schema of bodySchemas(post.requestBody, components)) visit(schema, fileOf(post.tags[0]));
  return owners;
}

/** Bodies are written out where they are sent; what they are made of may have a place of its own. */
function bodySchemas(body, { schemas }) {
  const all = Object.values(body?.content ?? {}).map(({ schema = {} }) => schema);
  return all.map((schema) => schemas[nameOf(schema)] ?? schema).filter(({ discriminator }) => !discriminator);
}

function referencesIn(value) {
  if (typeof value !== 'object' || value === null) return [];
  const own = nameOf(value);
  return [
    ...(own === undefined || !value.$ref.includes('/schemas/') ? [] : [own]),
    ...Object.values(value).flatMap(referencesIn),
  ];
}

const writerFor = ({ document, owners }, file) =>
  new SchemaWriter(document.components.schemas, (name) => {
    const owner = owners.get(name);
    if (owner === undefined) return undefined;
    return `${owner === file ? '' : owner}#${headingId(name, new Map())}`;
  });

const linkTo = ({ summary, tag }, file) =>
  `[${summary}](${fileOf(tag) === file ? '' : fileOf(tag)}#${headingId(summary, new Map())})`;

const lineOf = (operation, file) => `- ${linkTo(operation, file)} \`${operation.request}\``;

function page({ file, title, heading, about, blocks, requests = new Map() }) {
  return {
    path: `docs/${file}`,
    title,
    section: reference_section,
    about,
    markdown: [`# ${heading}`, ...blocks].join('\n\n') + '\n',
    is_reference: true,
    requests,
  };
}

function overviewPage(context) {
  const { document, operations } = context;
  const file = `${overview}.md`;
  const writer = writerFor(context, file);
  const groups = document.tags.map(({ name, description }) => {
    const lines = operations.filter(({ tag }) => tag === name).map((operation) => lineOf(operation, file));
    return `## ${name}\n\n${description} [All fields](${fileOf(name)})\n\n${lines.join('\n')}`;
  });
  const headers = Object.entries(document.components.headers).map(
    ([name, { description }]) => `- \`${name}\` ${escapeText(description)}`,
  );
  return page({
    file,
    title: 'Overview',
    heading: 'API reference',
    about: 'authentication, errors, limits, and every operation.',
    blocks: [
      document.info.description,
      `**In other forms.** The [OpenAPI document](../openapi.json) of this service has the inputs of all its models, too. [Send requests](${context.try_address}) from the browser.`,
      key_block,
      ...groups,
      `## Headers of answers\n\n${headers.join('\n')}`,
      ...objectsOf(context, file, writer),
    ],
  });
}

const key_block = 'The examples take the key from the environment:\n\n```sh\nexport KEY=mdl_…\n```';

function pageOf({ name, description }, context) {
  const file = fileOf(name);
  const writer = writerFor(context, file);
  const operations = context.operations.filter(({ tag }) => tag === name);
  const events = Object.entries(context.document.webhooks).filter(([, { post }]) => post.tags[0] === name);
  const links = (guides[name] ?? []).map((guide) => `[${context.titleOf(guide)}](${guide}.md)`);
  const see = links.length === 0 ? '' : ` ${links.length > 1 ? 'Guides' : 'Guide'}: ${links.join(', ')}.`;
  return page({
    file,
    title: name,
    heading: `API reference: ${name}`,
    about: description,
    requests: new Map(operations.map(({ summary, request }) => [summary, request])),
    blocks: [
      `${description}${see} All groups: [API reference](${overview}.md).`,
      operations.map((operation) => lineOf(operation, file)).join('\n'),
      key_block,
      ...operations.map((operation) => operationText(operation, writer, context)),
      ...events.map(([type, { post }]) => eventText(type, post, writer)),
      ...objectsOf(context, file, writer),
    ],
  });
}

/** Named schemas that stand on this page, with their fields. */
function objectsOf({ document, owners }, file, writer) {
  const names = [...owners].filter(([, owner]) => owner === file).map(([name]) => name);
  return names.map((name) => {
    const { description = '' } = document.components.schemas[name];
    const text = [`## ${name}`, escapeText(description), writer.fields(document.components.schemas[name]).join('\n')];
    return text.filter(Boolean).join('\n\n');
  });
}

function operationText(operation, writer, context) {
  const { summary, request, description = '', parameters = [], requestBody } = operation;
  const needs_no_key = operation.security?.length === 0;
  const blocks = [
    `## ${summary}`,
    `\`${request}\` [Try it](${context.try_address}${tryFragment(operation)})`,
    `${escapeText(description)}${needs_no_key ? ' Needs no key.' : ''}`,
    ...(parameters.length === 0
      ? []
      : [
          '### Parameters',
          parameters
            .map((each) => [writer.parameter(each), ...writer.nested(each.schema, { depth: 1 })].join('\n'))
            .join('\n'),
        ]),
    ...bodyTexts(requestBody, writer, context),
    ...sampleTexts(operation),
    ...answerTexts(operation, writer),
  ];
  return blocks.filter(Boolean).join('\n\n');
}

/** Where the page of requests has this operation. */
function tryFragment({ tag, request }) {
  const [method, path] = request.split(' ');
  return `#tag/${tag.toLowerCase().replaceAll(' ', '-')}/${method}${path}`;
}

function bodyTexts(body, writer, context) {
  return Object.entries(body?.content ?? {}).flatMap(([type, content]) => {
    const { schema = {} } = content;
    const head = `### Body${type === 'application/json' ? '' : `, as \`${type}\``}`;
    const variant = exampleVariant(writer.resolve(schema), content);
    if (variant === undefined)
      return [head, writer.fields(schema, { is_sent: true }).join('\n') || 'Bytes, or JSON without fixed fields.'];
    const model = context.operations.find(({ request }) => request === 'GET /v1/models/{id}');
    const sentence = `Its \`input\` has the fields of the model: here those of \`${variant.model}\`. The field \`input_schema\` of ${linkTo(model)} has those of any other.`;
    return [head, sentence, writer.fields({ $ref: variant.$ref }, { is_sent: true }).join('\n')];
  });
}

/** Bodies that differ by the model are shown for the model of the example. Returns undefined for others. */
function exampleVariant({ discriminator }, { examples = {} }) {
  if (discriminator === undefined) return undefined;
  const model = Object.values(examples)[0].value[discriminator.propertyName];
  return { model, $ref: discriminator.mapping[model] };
}

function sampleTexts(operation) {
  const samples = operation['x-codeSamples'].map(
    ({ lang, label, source }) => `<!-- sample ${label} -->\n\`\`\`${fences[lang]}\n${source}\n\`\`\``,
  );
  return ['### Example', ...samples];
}

function answerTexts({ responses }, writer) {
  const all = Object.entries(responses);
  const answers = all.filter(([status]) => Number(status) < 400);
  const errors = all.filter(([status]) => Number(status) >= 400);
  const body = errors.map(([, { content }]) => content?.['application/json']?.schema).find(Boolean);
  return [
    '### Answer',
    answers.map((answer) => answerLines(answer, writer).join('\n')).join('\n'),
    '### Errors',
    body && `Their body is ${writer.type(body)}.`,
    errors.map(([status, { description }]) => `- \`${status}\` ${escapeText(description)}`).join('\n'),
  ];
}

function answerLines([status, { description, content = {}, headers = {} }], writer) {
  const own = Object.entries(headers).filter(([, header]) => header.$ref === undefined);
  const bodies = Object.entries(content).map(([type, { schema }]) =>
    schema === undefined || writer.type(schema) === 'object' ? `\`${type}\`` : writer.type(schema),
  );
  const nested = Object.values(content).flatMap(({ schema }) =>
    schema === undefined ? [] : writer.nested(schema, { depth: 1 }),
  );
  return [
    [`- \`${status}\``, bodies.length === 0 ? '' : `*${bodies.join(' or ')}*`, escapeText(description)]
      .filter(Boolean)
      .join(' '),
    ...nested,
    ...own.map(([name, each]) => `  - \`${name}\` *header* ${escapeText(each.description)}`),
  ];
}

/** An event that the service posts to endpoints of an account. */
function eventText(type, { summary, requestBody }, writer) {
  const [schema] = Object.values(requestBody.content).map((content) => content.schema);
  return [`## Event ${type}`, escapeText(summary), '### Body', writer.fields(schema).join('\n')].join('\n\n');
}
