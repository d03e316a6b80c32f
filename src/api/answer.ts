import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Answer, Poured } from './endpoint.ts';

const json = 'application/json; charset=utf-8';

/** Sends what an endpoint answered. `last`: the connection ends with it. */
export function sendAnswer(reply: FastifyReply, answer: Answer, last: boolean): FastifyReply {
  const { status, body, headers = {} } = answer;
  reply.code(status).headers(headers);
  if (last) reply.header('connection', 'close');
  if (body === undefined) return reply.send();
  if (isPoured(body)) return pour(reply, body);
  if (headers['content-type'] === undefined) reply.header('content-type', json);
  return reply.send(isBytes(body) ? body : JSON.stringify(body));
}

function isPoured(body: object | string): body is Poured {
  return typeof body === 'object' && 'pour' in body && typeof body.pour === 'function';
}

function pour(reply: FastifyReply, body: Poured): FastifyReply {
  reply.hijack();
  reply.raw.statusCode = reply.statusCode;
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) reply.raw.setHeader(name, value);
  body.pour(reply.raw);
  return reply;
}

function isBytes(body: object | string): body is string | Buffer | Readable {
  return typeof body === 'string' || Buffer.isBuffer(body) || body instanceof Readable;
}
