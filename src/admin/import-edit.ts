import { closedLeaseWarnings, leaseUsageWarnings } from '../config/check/access.ts';
import { networkWarnings, socketWarnings } from '../config/check/upstreams.ts';
import { foreignFieldOf, readOwnDocument } from '../config/own-config.ts';
import type { ChangeResult, Edit } from './change.ts';
import { invalid } from './route.ts';

interface ImportEdit {
  readonly edit: Edit;
  readonly warningsOf: (changed: ChangeResult) => string[];
}

const FOREIGN =
  'belongs to the configuration of another gateway or agent, which the admin API does not convert; run ' +
  '`headgate apply FILE`, or import it on the page Import / export of the dashboard';

/**
 * Creates the edit that replaces the whole configuration by a document, and the function that returns its warnings. The
 * document may omit the admin keys to keep them.
 */
export function importEdit(document: unknown): ImportEdit {
  const foreign = foreignFieldOf(document);
  if (foreign !== null) throw invalid([{ path: foreign, message: FOREIGN }]);
  const read = readOwnDocument(document);
  if (!read.ok) throw invalid(read.errors);
  const { config: wanted, notes } = read;
  const isWithAdminKeys = 'admin_keys' in Object(document);
  return {
    edit: {
      action: 'config: import',
      next: (present) => (isWithAdminKeys ? wanted : { ...wanted, admin_keys: present.admin_keys }),
    },
    warningsOf: ({ before, config, warnings }) => [
      ...notes,
      ...closedLeaseWarnings(document, before, config),
      ...warnings,
      ...[networkWarnings, socketWarnings, leaseUsageWarnings].flatMap((of) => of(config)),
    ],
  };
}
