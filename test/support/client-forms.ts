/**
 * Forms with an audio file and the model `whisper-1`, as clients write them. `captured`: the bytes that this client sent to a
 * server on loopback. `documented`: the form that its source or documentation describes.
 */

export interface ClientForm {
  readonly client: string;
  readonly source: 'captured' | 'documented';
  /** The `content-type` of the request. */
  readonly type: string;
  readonly parts: readonly { readonly headers: readonly string[]; readonly content: string }[];
}

/** The boundary that a content type names, with quotes or without. */
const BOUNDARY = /boundary=(?:"([^"]+)"|([^;]+))/;

/** The bytes of a form. */
export function bytesOf({ type, parts }: ClientForm): Uint8Array<ArrayBuffer> {
  const [, quoted, plain = ''] = BOUNDARY.exec(type) ?? [];
  const boundary = quoted ?? plain;
  const text = parts.map(
    ({ headers, content }) => `--${boundary}\r\n${headers.join('\r\n')}\r\n\r\n${content}\r\n`,
  );
  const bytes = new TextEncoder().encode(`${text.join('')}--${boundary}--\r\n`);
  return new Uint8Array(bytes);
}

const CAPTURED: readonly ClientForm[] = [
  {
    client: 'Chromium 156, fetch with FormData',
    source: 'captured',
    type: 'multipart/form-data; boundary=----WebKitFormBoundarynv1CPObkaZVNj6Iq',
    parts: [
      { headers: ['Content-Disposition: form-data; name="language"'], content: 'de' },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung %22a%22; name=x.wav"',
          'Content-Type: audio/wav',
        ],
        content: 'RIFF\r\n--x',
      },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: ['Content-Disposition: form-data; name="timestamp_granularities[]"'],
        content: 'word',
      },
    ],
  },
  {
    client: 'Firefox 153, fetch with FormData',
    source: 'captured',
    type: 'multipart/form-data; boundary=----geckoformboundaryd5a51be802ca214afa99d824d28618ae',
    parts: [
      { headers: ['Content-Disposition: form-data; name="language"'], content: 'de' },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung %22a%22; name=x.wav"',
          'Content-Type: audio/wav',
        ],
        content: 'RIFF\r\n--x',
      },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: ['Content-Disposition: form-data; name="timestamp_granularities[]"'],
        content: 'word',
      },
    ],
  },
  {
    client: 'Node 20 (undici), fetch with FormData',
    source: 'captured',
    type: 'multipart/form-data; boundary=----formdata-undici-070988837240',
    parts: [
      { headers: ['Content-Disposition: form-data; name="language"'], content: 'de' },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung %22a%22; name=x.wav"',
          'Content-Type: audio/wav',
        ],
        content: 'RIFF\r\n--x',
      },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: ['Content-Disposition: form-data; name="timestamp_granularities[]"'],
        content: 'word',
      },
    ],
  },
  {
    client: 'curl 7.88, -F',
    source: 'captured',
    type: 'multipart/form-data; boundary=------------------------38cb097089bb44e4',
    parts: [
      { headers: ['Content-Disposition: form-data; name="language"'], content: 'de' },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung %22a%22; name=x.wav"',
          'Content-Type: audio/wav',
        ],
        content: 'RIFF\r\n--x',
      },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: ['Content-Disposition: form-data; name="timestamp_granularities[]"'],
        content: 'word',
      },
    ],
  },
  {
    client: 'Python, requests 2.34 (urllib3 2.7)',
    source: 'captured',
    type: 'multipart/form-data; boundary=290aad74e1c73aac8c3cbc0284e1e377',
    parts: [
      { headers: ['Content-Disposition: form-data; name="language"'], content: 'de' },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: ['Content-Disposition: form-data; name="timestamp_granularities[]"'],
        content: 'word',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung %22a%22; name=x.wav"',
          'Content-Type: audio/wav',
        ],
        content: 'RIFF\r\n--x',
      },
    ],
  },
  {
    client: 'Python, httpx 0.23',
    source: 'captured',
    type: 'multipart/form-data; boundary=e347df0fdd703a43b331251a032f3070',
    parts: [
      { headers: ['Content-Disposition: form-data; name="language"'], content: 'de' },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: ['Content-Disposition: form-data; name="timestamp_granularities[]"'],
        content: 'word',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung %22a%22; name=x.wav"',
          'Content-Type: audio/wav',
        ],
        content: 'RIFF\r\n--x',
      },
    ],
  },
  {
    client: 'Python, aiohttp 3.8',
    source: 'captured',
    type: 'multipart/form-data; boundary=160e6561e5f14d1dbbb6a77a58410951',
    parts: [
      {
        headers: [
          'Content-Type: text/plain; charset=utf-8',
          'Content-Disposition: form-data; name="language"',
        ],
        content: 'de',
      },
      {
        headers: [
          'Content-Type: audio/wav',
          'Content-Disposition: form-data; name="file"; filename="%C3%9Cbung%20%22a%22%3B%20name%3Dx.wav"',
        ],
        content: 'RIFF\r\n--x',
      },
      {
        headers: [
          'Content-Type: text/plain; charset=utf-8',
          'Content-Disposition: form-data; name="model"',
        ],
        content: 'whisper-1',
      },
      {
        headers: [
          'Content-Type: text/plain; charset=utf-8',
          'Content-Disposition: form-data; name="timestamp_granularities[]"',
        ],
        content: 'word',
      },
    ],
  },
  {
    client: 'Python 3.11, email.mime',
    source: 'captured',
    type: 'multipart/form-data; boundary="===============1945248487018671501=="',
    parts: [
      {
        headers: [
          'Content-Type: text/plain; charset="us-ascii"',
          'MIME-Version: 1.0',
          'Content-Transfer-Encoding: 7bit',
          'Content-Disposition: form-data; name="model"',
        ],
        content: 'whisper-1',
      },
      {
        headers: [
          'Content-Type: application/octet-stream',
          'MIME-Version: 1.0',
          'Content-Transfer-Encoding: base64',
          'Content-Disposition: form-data; name="file";',
          ` filename*0*=us-ascii''a%20very%20long%20name%20of%20a%20file%20so%20that;`,
          ' filename*1*=%20the%20header%20is%20folded%20by%20the%20policy%20of%20email;',
          ' filename*2*=%20-%20Uebung%20number%20seventeen.wav',
        ],
        content: 'UklGRg==\r\n',
      },
    ],
  },
  {
    client: 'Go 1.19, mime/multipart',
    source: 'captured',
    type: 'multipart/form-data; boundary=9ef1bb14069f2967d2686042914c5fdceeb28d61feaf5574b01f0924818b',
    parts: [
      { headers: ['Content-Disposition: form-data; name="language"'], content: 'de' },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung \\"a\\"; name=x.wav"',
          'Content-Type: application/octet-stream',
        ],
        content: 'RIFF\r\n--x',
      },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: ['Content-Disposition: form-data; name="timestamp_granularities[]"'],
        content: 'word',
      },
    ],
  },
  {
    client: 'Java, Apache HttpClient 4.5, strict',
    source: 'captured',
    type: 'multipart/form-data; boundary=eSG1EKbESKzb-g3rYn3BfZSlR2XnrGkb',
    parts: [
      {
        headers: [
          'Content-Disposition: form-data; name="language"',
          'Content-Type: text/plain; charset=ISO-8859-1',
          'Content-Transfer-Encoding: 8bit',
        ],
        content: 'de',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="?bung \\"a\\"; name=x.wav"',
          'Content-Type: audio/wav',
          'Content-Transfer-Encoding: binary',
        ],
        content: 'RIFF\r\n--x',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="model"',
          'Content-Type: text/plain; charset=ISO-8859-1',
          'Content-Transfer-Encoding: 8bit',
        ],
        content: 'whisper-1',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="timestamp_granularities[]"',
          'Content-Type: text/plain; charset=ISO-8859-1',
          'Content-Transfer-Encoding: 8bit',
        ],
        content: 'word',
      },
    ],
  },
  {
    client: 'Java, Apache HttpClient 4.5, as browsers do',
    source: 'captured',
    type: 'multipart/form-data; boundary=h4NKRbl5z0d6tRtZtMOthQ7udEPLpca35W; charset=UTF-8',
    parts: [
      { headers: ['Content-Disposition: form-data; name="language"'], content: 'de' },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung \\"a\\"; name=x.wav"',
          'Content-Type: audio/wav',
        ],
        content: 'RIFF\r\n--x',
      },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: ['Content-Disposition: form-data; name="timestamp_granularities[]"'],
        content: 'word',
      },
    ],
  },
  {
    client: 'Java, Apache HttpClient 4.5, RFC 6532',
    source: 'captured',
    type: 'multipart/form-data; boundary=aowUdE0iwzKIp99f9vmFIHM7YvxFjVQZL6dN; charset=UTF-8',
    parts: [
      {
        headers: [
          'Content-Disposition: form-data; name="language"',
          'Content-Type: text/plain; charset=ISO-8859-1',
          'Content-Transfer-Encoding: 8bit',
        ],
        content: 'de',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung \\"a\\"; name=x.wav"',
          'Content-Type: audio/wav',
          'Content-Transfer-Encoding: binary',
        ],
        content: 'RIFF\r\n--x',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="model"',
          'Content-Type: text/plain; charset=ISO-8859-1',
          'Content-Transfer-Encoding: 8bit',
        ],
        content: 'whisper-1',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="timestamp_granularities[]"',
          'Content-Type: text/plain; charset=ISO-8859-1',
          'Content-Transfer-Encoding: 8bit',
        ],
        content: 'word',
      },
    ],
  },
  {
    client: 'Java, OkHttp 3.13',
    source: 'captured',
    type: 'multipart/form-data; boundary=84b5137c-13b4-4317-8076-afe18c029a0c',
    parts: [
      {
        headers: ['Content-Disposition: form-data; name="language"', 'Content-Length: 2'],
        content: 'de',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="Übung %22a%22; name=x.wav"',
          'Content-Type: audio/wav',
          'Content-Length: 9',
        ],
        content: 'RIFF\r\n--x',
      },
      {
        headers: ['Content-Disposition: form-data; name="model"', 'Content-Length: 9'],
        content: 'whisper-1',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="timestamp_granularities[]"',
          'Content-Length: 4',
        ],
        content: 'word',
      },
    ],
  },
];

const CONTENT = 'RIFF\r\n--x';

/** A form whose parts have only a disposition, and a type for the file. */
const plainForm = (client: string, type: string, fileName: string): ClientForm => ({
  client,
  source: 'documented',
  type,
  parts: [
    {
      headers: [
        `Content-Disposition: form-data; name="file"; filename="${fileName}"`,
        'Content-Type: audio/wav',
      ],
      content: CONTENT,
    },
    { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
  ],
});

/** The same with names of headers in lower case. */
const lowerForm = (client: string, type: string): ClientForm => {
  const { parts, ...rest } = plainForm(client, type, 'a.wav');
  const lower = (header: string): string => header.replace(/^[^:]*/, (name) => name.toLowerCase());
  return { ...rest, parts: parts.map((one) => ({ ...one, headers: one.headers.map(lower) })) };
};

const DOCUMENTED: readonly ClientForm[] = [
  {
    client: '.NET, MultipartFormDataContent',
    source: 'documented',
    type: 'multipart/form-data; boundary="5b2f9c1d-7c3e-4d52-9d37-0f6a7c1be2aa"',
    parts: [
      {
        headers: [
          'Content-Type: audio/wav',
          'Content-Disposition: form-data; name=file; filename="=?utf-8?B?w5xidW5nLndhdg==?="; filename*=utf-8\'\'%C3%9Cbung.wav',
        ],
        content: CONTENT,
      },
      {
        headers: [
          'Content-Type: text/plain; charset=utf-8',
          'Content-Disposition: form-data; name=model',
        ],
        content: 'whisper-1',
      },
      {
        headers: [
          'Content-Type: text/plain; charset=utf-8',
          'Content-Disposition: form-data; name="timestamp_granularities[]"',
        ],
        content: 'word',
      },
    ],
  },
  {
    client: 'Java, Spring RestTemplate',
    source: 'documented',
    type: 'multipart/form-data;boundary=Kx-7_fV2qPq3mT0aZ1bC;charset=UTF-8',
    parts: [
      {
        headers: [
          'Content-Disposition: form-data; name="model"',
          'Content-Type: text/plain;charset=UTF-8',
          'Content-Length: 9',
        ],
        content: 'whisper-1',
      },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="a.wav"',
          'Content-Type: audio/wav',
          'Content-Length: 9',
        ],
        content: CONTENT,
      },
    ],
  },
  {
    client: 'Ruby, multipart-post',
    source: 'documented',
    type: 'multipart/form-data; boundary=-----------RubyMultipartPost-0c7f2d6e5ab14f5f9f1f3a8e7f0d2b1c',
    parts: [
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename="a.wav"',
          'Content-Length: 9',
          'Content-Type: audio/wav',
          'Content-Transfer-Encoding: binary',
        ],
        content: CONTENT,
      },
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
    ],
  },
  {
    client: 'Rust, reqwest',
    source: 'documented',
    type: 'multipart/form-data; boundary=0b1e7c5d2f9a8e63-5c1d0a9b7e3f2468-9a7b6c5d4e3f2a10-1f2e3d4c5b6a7980',
    parts: [
      { headers: ['Content-Disposition: form-data; name="model"'], content: 'whisper-1' },
      {
        headers: [
          'Content-Disposition: form-data; name="file"; filename*=utf-8\'\'%C3%9Cbung.wav',
          'Content-Type: audio/wav',
        ],
        content: CONTENT,
      },
    ],
  },
  plainForm(
    'Safari 18, fetch with FormData',
    'multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gWq',
    'Übung %22a%22; name=x.wav',
  ),
  plainForm(
    'Firefox before 129',
    'multipart/form-data; boundary=---------------------------735323031399963166993862150',
    'Übung %22a%22.wav',
  ),
  plainForm(
    'Swift, Alamofire',
    'multipart/form-data; boundary=alamofire.boundary.6f0e8d2a1b3c4d5e',
    'a.wav',
  ),
  plainForm(
    'Swift, URLSession as tutorials write it',
    'multipart/form-data; boundary=Boundary-6E5B0F9C-1B7E-4A53-9F0B-2D6C8E1A7F34',
    'a.wav',
  ),
  lowerForm(
    'Dart, http',
    'multipart/form-data; boundary=dart-http-boundary-Yh.2+QqL_3c8Ze-0uWnB5xVtKf1rM7sDpGjA4oT6iE9',
  ),
  lowerForm('Dart, dio', 'multipart/form-data; boundary=--dio-boundary-0471923658'),
  plainForm(
    'Node, the package form-data',
    'multipart/form-data; boundary=--------------------------583712904417762038159264',
    'a.wav',
  ),
  plainForm(
    'curl before 7.81',
    'multipart/form-data; boundary=------------------------1f0a7be25c93d846',
    'a \\"b\\".wav',
  ),
];

export const CLIENT_FORMS: readonly ClientForm[] = [...CAPTURED, ...DOCUMENTED];
