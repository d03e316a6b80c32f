import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Answer } from './endpoint.ts';

const json = 'application/json; charset=utf-8';

/** Sends what an endpoint answered. `last`: the connection ends with it. */
export function sendAnswer(reply: FastifyReply, answer: Answer, last: boolean): FastifyReply {
  const { status, body, headers = {} } = answer;
  reply.code(status).headers(headers);
  if (last) reply.header('connection', 'close');
  if (body === undefined) return reply.send();
  if (headers['content-type'] === undefined) reply.header('content-type', json);
  return reply.send(isBytes(body) ? body : JSON.stringify(body));
}

function isBytes(body: object | string): body is string | Buffer | Readable {
  return typeof body === 'string' || Buffer.isBuffer(body) || body instanceof Readable;
}
