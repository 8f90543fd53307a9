import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** A key and the certificate of `localhost` that belongs to it. */
export interface CertifiedKey {
  readonly key: Buffer;
  /** The certificate that clients have to trust, and the file that it is in. */
  readonly cert: Buffer;
  readonly certPath: string;
}

/** Makes a key in the folder. */
export async function makeCertificate(folder: string): Promise<CertifiedKey> {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', key, '-out', certificate];
  const kind = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2'];
  await promisify(execFile)('openssl', ['req', ...kind, ...subject, ...files]);
  return { key: await readFile(key), cert: await readFile(certificate), certPath: certificate };
}
