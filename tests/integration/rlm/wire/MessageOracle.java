import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Reads messages with Kafka's own classes. For each line "FetchRequest 18 hex", prints the message
 * as JSON, a tab, and the message as Kafka writes it, in hex; after an error, "! " and the reason.
 */
public final class MessageOracle {
    private static final String PACKAGE = "org.apache.kafka.common.message.";

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        var answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(answer(line));
        }
    }

    private static String answer(String line) {
        String[] parts = line.split(" ", -1);
        try {
            return readAndWrite(parts[0], Short.parseShort(parts[1]), parts[2]);
        } catch (Exception | Error reason) {
            return "! " + reason.toString().replace('\n', ' ');
        }
    }

    private static String readAndWrite(String name, short version, String hex) throws Exception {
        Class<?> type = Class.forName(PACKAGE + name + "Data");
        var message = (ApiMessage) type.getConstructor().newInstance();
        ByteBuffer data = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        message.read(new ByteBufferAccessor(data), version);
        if (data.hasRemaining()) {
            throw new IllegalArgumentException(data.remaining() + " bytes are left");
        }
        JsonNode json = (JsonNode) Class.forName(PACKAGE + name + "DataJsonConverter")
            .getMethod("write", type, short.class, boolean.class)
            .invoke(null, message, version, true);
        ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        return json + "\t" + HexFormat.of().formatHex(bytes);
    }
}
