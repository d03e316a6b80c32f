import { Type } from 'typebox';
import { duration, section } from './schema-parts.ts';

const ten_years = '3650d';

/** Time for which rows are kept. */
export const retention = section(
  {
    chat_records: Type.Optional(
      duration(ten_years, { description: 'Records of chat calls, without content. Default: tasks.keep.' }),
    ),
    deliveries: Type.Optional(
      duration(ten_years, {
        description: 'Webhook deliveries that have ended, at least a day longer than tasks. Default: tasks.keep.',
      }),
    ),
    audit: Type.Optional(duration(ten_years, { description: 'Entries of the audit log. Default: for ever.' })),
    sessions: Type.Optional(duration(ten_years, { description: 'Sessions of people after their end.', default: '1d' })),
    invitations: Type.Optional(duration(ten_years, { description: 'Invitations after their end.', default: '30d' })),
  },
  { description: 'Time for which rows of the database are kept. The ledger is kept until its months are closed.' },
);
