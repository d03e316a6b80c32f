import { parseSearchWith, stringifySearchWith } from '@tanstack/react-router';
import { readValue } from './address-value.ts';

/** The search parameters of an address, and back. */
export const parseSearch = parseSearchWith(readValue);
export const stringifySearch = stringifySearchWith(JSON.stringify, readValue);
