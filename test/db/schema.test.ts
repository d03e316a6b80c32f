import { afterAll, beforeAll, expect, it } from 'vitest';
import { schemaText } from '../helpers/schema.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterAll(() => database.drop());

it('sql/schema.sql is what the migrations and functions come to', async () => {
  await expect(schemaText(database.db)).resolves.toMatchFileSnapshot('../../sql/schema.sql');
});
