import { randomUUID } from 'node:crypto';
import type * as Nodemailer from 'nodemailer';
import type { Logger } from 'pino';
import { Semaphore } from '../concurrency/semaphore.ts';
import { resolveSecret } from '../config.ts';
import { isRecord } from '../lib/is-record.ts';

/** A mail as plain text: nobody has to render what a stranger wrote. */
export type Mail = {
  to: string | readonly string[];
  subject: string;
  text: string;
  /** The same at every try: mail programs show two mails of one id as one. */
  id?: string;
};

/** Settings of outgoing mail. */
export type MailSettings = { readonly url: string; readonly from: string };

export type Mailer = {
  /** Can mail be sent at all? Otherwise links are handed over by whoever runs the service. */
  ready(): boolean;
  /** Takes a mail and returns at once: a request never waits for a mail server. Tried three times, then logged. */
  post(mail: Mail): void;
  /** Sends a mail now, once. Throws what the server says. */
  send(mail: Mail): Promise<void>;
  /** Mails that still wait for another try are given up. */
  close(): void;
};

type Options = {
  /** Undefined: there is none. Asked each time, since the configuration may be read anew. */
  settings(): MailSettings | undefined;
  log: Logger;
  limit?: Semaphore;
  retry_delays_ms?: readonly number[];
  /** For one try, whatever the server does meanwhile. */
  timeout_ms?: number;
};

export function mailLimit(): Semaphore {
  return new Semaphore({ name: 'Mails', bound: 4, queue_bound: 1_000 });
}

/** A mail that a server refuses for good, such as one to nobody: no use trying it again. */
export function isRefusal(error: unknown): boolean {
  const { responseCode } = replyIn(error);
  return isAboutMail(error) && typeof responseCode === 'number' && responseCode >= 500;
}

/**
 * A mail that a server does not take, for good or for now, where others may be taken: its addresses, or its text. A
 * sender that it refuses is that of all mails, and so is what its policy does not allow us (X.7.X of RFC 3463).
 */
export function isAboutMail(error: unknown): boolean {
  const { code, command, response } = replyIn(error);
  const is_about_us = command === 'MAIL FROM' || /^\d{3}[ -]\d\.7\./.test(String(response));
  return (code === 'EENVELOPE' || code === 'EMESSAGE') && !is_about_us;
}

/** Returns the library's notes about a mail server's reply. */
function replyIn(error: unknown): Record<string, unknown> {
  return isRecord(error) ? error : {};
}

/** Opens nothing yet: the library is loaded for the first mail. */
export function openMailer({ settings, log, limit = mailLimit(), ...times }: Options): Mailer {
  const { retry_delays_ms = [5_000, 60_000], timeout_ms = 30_000 } = times;
  const timers = new Set<NodeJS.Timeout>();
  const closing = new AbortController();

  const send = async (mail: Mail) => {
    const { createTransport } = await import('nodemailer');
    await sendOne(createTransport, settings(), mail, timeout_ms);
  };
  const attempt = async (mail: Mail, attempts: number): Promise<void> => {
    const permit = await limit.acquire('', { signal: closing.signal });
    if (closing.signal.aborted) return permit?.release();
    if (!permit) return log.error({ subject: mail.subject }, 'too many mails wait: one was lost');
    try {
      await send(mail);
    } catch (error) {
      retry(mail, attempts, error);
    } finally {
      permit.release();
    }
  };
  const retry = (mail: Mail, attempts: number, error: unknown): void => {
    const delay_ms = isRefusal(error) || closing.signal.aborted ? undefined : retry_delays_ms[attempts];
    // Never its text: the links in it are as good as passwords.
    const details = { subject: mail.subject, err: error };
    if (delay_ms === undefined) return log.error(details, 'a mail could not be sent');
    log.warn({ ...details, delay_ms }, 'a mail could not be sent, and will be tried again');
    const timer = setTimeout(() => {
      timers.delete(timer);
      void attempt(mail, attempts + 1);
    }, delay_ms);
    timers.add(timer.unref());
  };

  return {
    ready: () => urlOf(settings()) !== undefined,
    post: (mail) => {
      if (urlOf(settings()) !== undefined) void attempt({ id: randomUUID(), ...mail }, 0);
    },
    send,
    close: () => {
      closing.abort();
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

function urlOf(settings: MailSettings | undefined): string | undefined {
  return settings && resolveSecret(settings.url);
}

async function sendOne(
  createTransport: typeof Nodemailer.createTransport,
  settings: MailSettings | undefined,
  mail: Mail,
  timeout_ms: number,
): Promise<void> {
  const url = urlOf(settings);
  if (!settings || url === undefined) throw new Error('mail is not configured, or the variable of mail.url is not set');
  if (!/^smtps?:\/\//.test(url))
    throw new Error('the address of the mail server does not begin with smtp:// or smtps://');
  const transport = createTransport({
    connectionTimeout: timeout_ms,
    greetingTimeout: timeout_ms,
    socketTimeout: timeout_ms,
    url,
  });
  const { to, subject, text, id } = mail;
  const late = AbortSignal.timeout(timeout_ms); // one that went on would arrive beside the next try
  const sending = transport.sendMail({
    from: settings.from,
    to: [to].flat(),
    subject,
    text,
    headers: { 'Auto-Submitted': 'auto-generated' }, // RFC 3834: nobody's holiday answers it
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(id !== undefined && { messageId: `<${id}@${domainOf(settings.from)}>` }),
    signal: late,
  });
  await sending.catch((error: unknown) => {
    throw late.aborted ? new Error(`the mail server took more than ${timeout_ms} ms`) : error;
  });
}

function domainOf(from: string): string {
  return /@([^\s>]+)/.exec(from)?.[1] ?? 'localhost';
}
