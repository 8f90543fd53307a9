import { TOKEN_ACTOR } from '../../contract/config/keys.ts';
import type { Config } from '../../contract/config/config.ts';
import type { FieldError } from '../field-error.ts';

/** Finds admin keys whose id means `ADMIN_TOKEN` in the audit log and in sessions. */
export function adminKeyErrors({ admin_keys: keys }: Config): FieldError[] {
  return keys.flatMap(({ id }, index) => {
    if (id !== TOKEN_ACTOR) return [];
    const message = 'is the name of `ADMIN_TOKEN` in the audit log; choose another id';
    return [{ path: `admin_keys[${index}].id`, message }];
  });
}
