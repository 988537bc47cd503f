/**
 * What a file can be called in a mail: `application/pdf`, without parameters. Mails and parts of mails are none: they must not be
 * encoded as files are.
 */
export const isMediaType = (text: string) =>
  /^(?!multipart\/|message\/)[a-z0-9][\w!#$&^.+-]{0,62}\/[a-z0-9][\w!#$&^.+-]{0,126}$/i.test(text)
