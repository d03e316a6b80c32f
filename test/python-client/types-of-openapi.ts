import { answers, schemaOf, type OpenApi, type Schema } from '../typescript-client/types-of-openapi.ts';

const head = `"""Answers of the service. Written from openapi.json by test/python-client/written.unit.test.ts, with --update."""

from __future__ import annotations

from typing import Literal, TypedDict
`;

/** Returns the text of clients/python/src/medley_client/types.py. */
export function pythonTypesOf(openapi: OpenApi): string {
  const parts = answers.flatMap((name) => classesOf(name, schemaOf(openapi, name)));
  return [head, ...parts].join('\n\n');
}

/** Returns a class, after those of its members that have no name in openapi.json. */
function classesOf(name: string, schema: Schema): string[] {
  const { properties = {}, required = [] } = schema;
  const inner: string[] = [];
  if (schema.enum ?? schema.anyOf) return [`${name} = ${typeOf(schema, name, inner)}\n`];
  const fields = Object.entries(properties).map(([key, each]) => {
    const type = typeOf(each, `${name}${capital(key)}`, inner);
    return { key, type, note: noteOf(each), is_required: required.includes(key) };
  });
  const doc = schema.description === undefined ? [] : [`    """${schema.description}"""\n`];
  if (fields.some(({ key }) => keywords.includes(key))) {
    const lines = fields.map(({ key, type }) => `        "${key}": ${type.includes('[') ? type : `"${type}"`},`);
    return [...inner, `${name} = TypedDict(\n    "${name}",\n    {\n${lines.join('\n')}\n    },\n)\n`];
  }
  const lineOf = ({ key, type, note }: (typeof fields)[number]) => `${note}    ${key}: ${type}\n`;
  const [always, sometimes] = [fields.filter((f) => f.is_required), fields.filter((f) => !f.is_required)];
  if (sometimes.length === 0)
    return [...inner, `class ${name}(TypedDict):\n${[...doc, ...always.map(lineOf)].join('')}`];
  // NotRequired came with Python 3.11.
  const base = always.length === 0 ? 'TypedDict' : `_${name}Always`;
  return [
    ...inner,
    ...(always.length === 0 ? [] : [`class ${base}(TypedDict):\n${always.map(lineOf).join('')}`]),
    `class ${name}(${base}, total=False):\n${[...doc, ...sometimes.map(lineOf)].join('')}`,
  ];
}

const keywords = ['from', 'class', 'import', 'global', 'in', 'is'];

function typeOf(schema: Schema, name: string, inner: string[]): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? '';
  if (schema.const !== undefined) return `Literal["${schema.const}"]`;
  if (schema.enum) return `Literal[${schema.enum.map((each) => `"${each}"`).join(', ')}]`;
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, name, inner)).join(' | ');
  switch (schema.type) {
    case 'string':
      return 'str';
    case 'boolean':
      return 'bool';
    case 'null':
      return 'None';
    case 'integer':
      return 'int';
    case 'number':
      return 'float';
    case 'array':
      return `list[${typeOf(schema.items ?? {}, name, inner)}]`;
    case 'object':
      return objectType(schema, name, inner);
    default:
      return 'object';
  }
}

function objectType(schema: Schema, name: string, inner: string[]): string {
  const [value] = Object.values(schema.patternProperties ?? {});
  if (value) return `dict[str, ${typeOf(value, name, inner)}]`;
  if (Object.keys(schema.properties ?? {}).length === 0) return 'dict[str, object]';
  inner.push(...classesOf(name, schema));
  return name;
}

function capital(key: string): string {
  return key
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** Returns the description as lines of a comment that are not too long. */
function noteOf(schema: Schema): string {
  const text = schema.description ?? schema.anyOf?.[0]?.description;
  if (text === undefined) return '';
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (`${line} ${word}`.length > 110) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.map((line) => `    #: ${line}\n`).join('');
}
