import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Caller } from '../accounts/authenticate.ts';
import type { Need, Person } from '../accounts/person.ts';
import type { ErrorFormat } from '../errors.ts';
import type { WindowName } from '../limits/window.ts';
import type { BodyStreamReader } from './body-stream.ts';
import type { FormReader } from './form.ts';

/** The query's parameters, decoded. Of `metadata[color]=red` the name is `metadata[color]`. */
export type Query = ReadonlyMap<string, string>;

/** One request that has passed the pipeline, as an endpoint sees it. */
export type PublicCall = {
  method: string;
  /** The path as it was sent: not decoded, without the query. */
  path: string;
  /** Decoded values of the `{name}` parts of the endpoint's path. */
  params: Record<string, string>;
  query: Query;
  /** The JSON object of the body; undefined if there was none, or it was released. */
  readonly body: Record<string, unknown> | undefined;
  /** The bytes of the body as they came, until it is released. */
  readonly body_bytes: Buffer;
  headers: IncomingHttpHeaders;
  /** Reads the form of an endpoint with `form`, once. */
  readForm: FormReader | undefined;
  /** Reads the body of an endpoint with `stream`, once. */
  readStream: BodyStreamReader | undefined;
  /** The client's, behind trusted proxies too. */
  address: string;
  request_id: string;
  /** Aborted when the client is gone before it was answered; with an ApiError if a stop of the service sent it away. */
  readonly gone: AbortSignal;
  /** Aborted when the service is about to stop: whoever waits answers with what there is. */
  readonly draining: AbortSignal;
  /** Forgets the body, where nobody reads it any more long before the end of the answer: others may use its memory. */
  releaseBody(): void;
};

/** The part of a request that is there before its body. */
export type RequestHead = Pick<PublicCall, 'method' | 'path' | 'params' | 'query' | 'headers' | 'address'>;

/** A call of an endpoint that needs a key. */
export type Call = PublicCall & { caller: Caller };

/** A call of an endpoint of the dashboard, by somebody who has signed in. */
export type SessionCall = PublicCall & { person: Person };

/**
 * Response of an endpoint. Objects are sent as JSON; strings, Buffers and streams byte for byte, with the
 * `content-type` of `headers` (JSON if there is none). Header names are in lower case.
 */
export type Answer = {
  status: number;
  body?: object | string | Buffer | Readable | BodyWriter;
  headers?: Record<string, string | string[]>;
};

/** Writes the body itself, once it is given the answer to write it to. */
export type BodyWriter = { writeTo(response: ServerResponse): void };

/** JSON Schema 2020-12, written down or made by TypeBox. */
export type Schema = object;

export type ParameterDocs = { description: string; schema: Schema; required?: boolean; example?: unknown };

export type ResponseDocs = {
  description: string;
  /** The schema of the JSON body; without it the answer has none, or one of `content_type`. */
  schema?: Schema;
  content_type?: string;
  example?: unknown;
  headers?: Record<string, ParameterDocs>;
};

/** Documentation of an endpoint, from which /openapi.json is made. */
export type EndpointDocs = {
  tag: string;
  summary: string;
  description?: string;
  params?: Record<string, ParameterDocs>;
  /**
   * The whole list of accepted query parameters. One whose schema is an object is written
   * `name[key]=value`.
   */
  query?: Record<string, ParameterDocs>;
  headers?: Record<string, ParameterDocs>;
  /** Of the header `accept`, where callers must send it. */
  accept?: string;
  /** Declared: a JSON body is required, unless it says otherwise. */
  body?: {
    schema: Schema;
    required?: boolean;
    /** The code samples send the first. In a form, the value of a file is a name of one. */
    examples?: Record<string, unknown>;
    content_type?: string;
    /** Schema of the body as multipart/form-data, if the endpoint takes that too. */
    form_schema?: Schema;
  };
  /** Answers below 400, and errors that need a sentence of their own. */
  responses: Record<number, ResponseDocs>;
  /** Statuses of errors beyond those of the pipeline: 400, 401, 413, 415, 429 and 500; of public endpoints 400. */
  errors?: readonly number[];
  /** Left out of /openapi.json: pages and their scripts. */
  hidden?: true;
};

type EndpointBase = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/v1/tasks/{id}`; a last part `{+id}` takes slashes too, plain or as %2F. GET answers HEAD too. */
  path: string;
  /** Absent: the service's own. */
  format?: ErrorFormat;
  body_limit_bytes?: number;
  /** The body is thrown away unread, whatever it is. */
  ignores_body?: true;
  /** The endpoint takes the bytes as they came, and parses them itself once it trusts them. */
  raw_body?: true;
  /** The body is multipart/form-data, which the endpoint reads itself by `readForm`; or that or JSON. */
  form?: true | 'or JSON';
  /** The body is of any type, and the endpoint reads it itself by `readStream`. */
  stream?: true;
  /** Accept query parameters that are not declared: SDKs of the chat styles add their own. */
  lenient_query?: true;
  /** Whole numbers of the body that a double cannot hold are LongIntegers instead of refused: what is passed on keeps its digits. */
  long_integers?: true;
  docs: EndpointDocs;
};

/** Needs no key. */
export type PublicEndpoint<App> = EndpointBase & {
  public: true;
  session?: undefined;
  /** Requests of one address in a minute; of IPv6, of one /56, which is what a customer has. */
  per_minute_per_address?: number;
  /** Throws ApiError for what is refused whatever its body is: called before any of that is read. */
  admit?(app: App, head: RequestHead): void;
  handle(app: App, call: PublicCall): Promise<Answer> | Answer;
};

/**
 * Needs a session: a person who has signed in, and may do this. An API key opens none of these, and a session
 * none of the others.
 */
export type SessionEndpoint<App> = EndpointBase & {
  public?: false;
  /** With a path that names an `{account}`: what the person must be allowed to do with it. */
  session: Need;
  /** Beyond the session, the person must have proved lately who they are: a stolen session is not enough for this. */
  needs_proof?: true;
  /** For members who are limited to projects: answers what is of these, or the same as to everybody; absent: 403. */
  limited?: 'own' | 'same';
  handle(app: App, call: SessionCall): Promise<Answer> | Answer;
};

/** Needs a key; counted in its window, `other` unless it says otherwise. */
export type KeyedEndpoint<App> = EndpointBase & {
  public?: false;
  session?: undefined;
  window?: WindowName;
  handle(app: App, call: Call): Promise<Answer> | Answer;
};

/** A route of the service as a value: what it takes, what it is called, what it does. */
export type Endpoint<App> = PublicEndpoint<App> | KeyedEndpoint<App> | SessionEndpoint<App>;
